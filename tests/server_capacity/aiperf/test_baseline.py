"""When a server is quiet again: seen by its metrics, on a clock of the test's own."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.facts.server_metric import Interval, LiveMetric, ServerLog, ServerMetric
from server_capacity.aiperf.baseline import LIMIT_S, LOOK_S, PAUSE_S, wait_for_baseline
from tests.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.facts.instances import InstanceSource

BEGIN, END = 100.0, 110.0


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = END

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Server:
    """A source whose metric is a function of when an interval ends."""

    def __init__(self, value: Callable[[float], float | None], name: str = "CPUUtilization") -> None:
        self._value = value
        self._name = name
        self.begun = 0

    def warnings(self, seconds: float | None, *, ahead: bool = True) -> list[str]:
        del seconds, ahead
        return []

    def instances(self) -> list[InstanceSource]:
        return []

    def begin(self) -> None:
        self.begun += 1

    def latest(self) -> list[LiveMetric]:
        return []

    def collect(self, interval: Interval, say: Callable[[str], None]) -> list[ServerMetric]:
        del say
        return [ServerMetric("test", self._name, {"Average": self._value(interval.end), "p99": None})]

    def logs(self, *_: object) -> list[ServerLog]:
        return []


def wait(server: Server, during: float | None) -> tuple[float, list[str]]:
    """How long was waited, and what was said."""
    clock, said = Clock(), list[str]()
    rows = [ServerMetric("test", server._name, {"Average": during})]
    wait_for_baseline([server], Interval(BEGIN, BEGIN, END, 5), rows, said.append, clock=clock, sleep=clock.sleep)
    return clock.now - END, said


def decaying(end: float) -> float:
    """10 before the wave, 90 at its end, 2 less every second."""
    return 10.0 if end <= BEGIN else max(10.0, 90.0 - 2.0 * (end - END))


def test_it_returns_when_little_of_the_change_is_left() -> None:
    server = Server(decaying)
    waited, said = wait(server, 90.0)
    assert 36 <= waited <= 36 + LOOK_S
    assert server.begun == len(said)
    assert mentions(said[1], "CPUUtilization", "80", "10")


def test_no_data_is_no_load() -> None:
    assert wait(Server(lambda end: 10.0 if end <= BEGIN else None), 90.0)[0] == LOOK_S


@pytest.mark.parametrize(("before", "during", "after"), [(50.0, 100.0, 0.0), (50.0, 20.0, 80.0)])
def test_beyond_where_it_was_is_back_too(before: float, during: float, after: float) -> None:
    """A bucket of a minute before the wave may hold the wave's beginning."""
    assert wait(Server(lambda end: before if end <= BEGIN else after), during)[0] == LOOK_S


@pytest.mark.parametrize(
    ("server", "during"),
    [
        (Server(lambda _: None), 90.0),
        (Server(lambda _: 10.0), 10.2),
        (Server(lambda end: 10.0 if end <= BEGIN else 50.0, "GPUMemoryUtilization"), 50.0),
    ],
    ids=["unknown before", "not moved", "lasting"],
)
def test_where_nothing_can_tell_it_is_a_pause(server: Server, during: float) -> None:
    assert wait(server, during) == (PAUSE_S, [])


def test_ctrl_c_is_the_end_of_it_where_a_source_would_only_end_its_own_waiting() -> None:
    class Patient(Server):
        def collect(self, interval: Interval, say: Callable[[str], None]) -> list[ServerMetric]:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            return super().collect(interval, say)

    with pytest.raises(KeyboardInterrupt):
        wait(Patient(decaying), 90.0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_source_with_a_fault_of_ours_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    class Faulty(Server):
        def collect(self, *_: object) -> list[ServerMetric]:
            raise KeyError("Timestamps")

    assert wait(Faulty(decaying), 90.0) == (PAUSE_S, [])
    assert "KeyError: 'Timestamps'" in capsys.readouterr().err


def test_a_server_that_stays_busy_is_not_waited_for_without_end() -> None:
    waited, said = wait(Server(lambda end: 10.0 if end <= BEGIN else 90.0), 90.0)
    assert LIMIT_S <= waited <= LIMIT_S + LOOK_S
    assert "going on" in said[-1]
