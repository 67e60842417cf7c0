"""``benchmark --interactive`` at a terminal: keys change the rate, and what was sent is what the endpoint saw."""

from __future__ import annotations

import termios
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import OpenLoop, Wave
from inference_benchmarker.plan.pacing import TokenBucket
from tests.bench import OF_A_BUSY_MACHINE, Bench, Running
from tests.parts import in_memory
from tests.person import Person

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.embedded.running import RunningEndpoint

pytestmark = pytest.mark.process


@pytest.fixture
def person() -> Iterator[Person]:
    made = Person()
    yield made
    made.leave()


def begin(bench: Bench, person: Person, endpoint: RunningEndpoint, **more: Any) -> Running:
    flags = ("--interactive", "--client-rps", 100, "--workers", 2)
    running = bench.start(*flags, target=endpoint, streams=person.streams, session=("setsid", "--ctty"), **more)
    running.wait_for_arrivals(endpoint, 10)
    return running


def change(running: Running, person: Person, keys: str, shown: str, endpoint: RunningEndpoint) -> None:
    """Press keys, read their answer, and wait until so many more requests have come that it is surely in force."""
    person.press(keys)
    running.wait_for(lambda: shown in person.screen, shown)
    running.wait_for_arrivals(endpoint, len(endpoint.arrivals()["sequence"]) + 25)


def rates(wave: Wave) -> list[int]:
    assert isinstance(wave.plan.load, OpenLoop)
    return [int(stage.to_rps) for stage in wave.plan.load.stages]


def test_keys_change_the_rate_and_q_is_a_planned_end(bench: Bench, person: Person) -> None:
    before = termios.tcgetattr(person.slave)
    with bench.endpoint(service="none") as endpoint:
        running = begin(bench, person, endpoint)
        change(running, person, "+", "Target 110/s", endpoint)
        change(running, person, "2", "Target 220/s", endpoint)
        change(running, person, "?", "? has no meaning here", endpoint)
        change(running, person, "/-", "Target 100/s", endpoint)
        person.press("q")
        finished = running.finish()
        arrived = sorted(endpoint.arrivals()["queued_ns"])
    assert termios.tcgetattr(person.slave) == before
    wave = Wave.load(finished.folder)
    assert rates(wave) == [100, 110, 220, 100]
    assert not {finding.code for finding in wave.verdict.findings if finding.severity == "invalid"} - OF_A_BUSY_MACHINE
    assert finished.code == wave.verdict.exit_code
    assert finished.code in (0, 3)
    planned = sorted(tuple(each) for worker in range(2) for each in TokenBucket.of(wave.plan).arrivals(worker))
    rows = zip(*(in_memory(wave.records).int(name).tolist() for name in ("index", "due")), strict=True)
    assert list(rows) == planned
    assert len(arrived) == len(planned)
    seen = zip(arrived, (due for _, due in planned), strict=True)
    assert all(at - wave.window.t0_monotonic_ns >= due for at, due in seen)


@pytest.mark.slow
def test_what_was_offered_is_known_where_everything_was_killed(bench: Bench, person: Person) -> None:
    with bench.endpoint(service="none") as endpoint:
        running = begin(bench, person, endpoint)
        change(running, person, "2", "Target 200/s", endpoint)
        running.wait_for_arrivals(endpoint, len(endpoint.arrivals()["sequence"]) + 250)  # more than between two reports
        running.kill_all()
        killed = running.finish()
    finished = bench.report(killed.folder)
    wave = Wave.load(killed.folder)
    assert finished.code == 3
    assert rates(wave) == [100, 200]
    assert set(in_memory(wave.records).int("index").tolist()) == set(range(len(wave.records)))
    assert "worker_lost" in {finding.code for finding in wave.verdict.findings}
