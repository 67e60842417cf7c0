"""The exchanges of a wave as they come in: which count as before, during and after it, and when enough is known."""

from __future__ import annotations

import pytest

from inference_benchmarker.engine.hosts.clock_watch import ClockWatch
from inference_benchmarker.engine.hosts.clocks import EXCHANGES

NS = 1_000_000_000
OFFSET = 5 * NS


class Host:
    """Answers at once over a way that takes ``way_ns``; its clock gains ``drift``, and is slewed by as much."""

    def __init__(self, way_ns: int, drift: float = 0.0) -> None:
        self.watch = ClockWatch()
        self.now = 0
        self._way = way_ns
        self._drift = drift

    def ask(self) -> None:
        asked, heard = self.now, self.now + self._way
        theirs = round(heard * (1 + self._drift)) + OFFSET
        self.now += 2 * self._way
        following = self.watch.take({"asked": asked, "heard": theirs, "answered": theirs, "raw": heard}, self.now)
        assert following == (self.watch.left > 0)

    def burst(self) -> int:
        self.watch.burst()
        asked = 0
        while self.watch.left:
            self.ask()
            asked += 1
        return asked


def test_nothing_is_known_before_the_first_exchanges_are_whole() -> None:
    host = Host(100_000)
    host.ask()
    assert host.watch.offset() is None
    host.watch.burst()
    host.ask()
    assert (host.watch.offset(), host.watch.drift_ppm()) == (None, None)


def test_a_wave_has_exchanges_before_during_and_after() -> None:
    host = Host(100_000, drift=50e-6)
    assert host.burst() == EXCHANGES
    first = host.watch.offset()
    assert first is not None
    assert first.offset_ns == pytest.approx(OFFSET, abs=first.uncertainty_ns)
    assert host.watch.drift_ppm() is None
    for _ in range(60):
        host.now += NS
        host.ask()
    assert host.burst() == EXCHANGES
    assert host.watch.drift_ppm() == pytest.approx(50, abs=5)
    assert host.watch.slew_ppm() == pytest.approx(50, abs=1)


def test_a_link_that_is_cut_when_the_clock_is_asked_at_the_end_makes_it_known_no_worse() -> None:
    """Questions of every second come back together with the first of the burst once the link is mended."""
    host = Host(100_000)
    host.burst()
    host.watch.burst()
    asked, host.now = host.now, host.now + 8 * NS
    fields = {"heard": host.now + OFFSET, "answered": host.now + OFFSET, "raw": host.now}
    follow = [host.watch.take({"asked": asked + number * NS, **fields}, host.now + number) for number in range(8)]
    assert follow == [True] + 7 * [False]
    assert host.watch.left == EXCHANGES - 1
    while host.watch.left:
        host.ask()
    offset = host.watch.offset()
    assert offset is not None
    assert offset.uncertainty_ns < 1_000_000


def test_a_link_that_is_cut_amid_the_last_questions_makes_the_clock_known_no_worse() -> None:
    """On a busy machine the first answer took long; then the link was cut, and three questions of ``keep`` waited."""
    host = Host(100_000)
    host.burst()
    host.watch.burst()
    fields = {"heard": host.now + OFFSET + 40_000_000, "raw": host.now}
    host.now += 80_000_000
    assert host.watch.take({"asked": host.now - 80_000_000, "answered": fields["heard"], **fields}, host.now)
    asked, host.now = host.now, host.now + 3 * NS
    fields = {"heard": host.now + OFFSET, "answered": host.now + OFFSET, "raw": host.now}
    follow = [host.watch.take({"asked": asked + number * NS, **fields}, host.now + number) for number in range(3)]
    assert follow == [True, False, False]
    while host.watch.left:
        host.ask()
    offset = host.watch.offset()
    assert offset is not None
    assert offset.uncertainty_ns < 1_000_000


def test_a_host_that_is_lost_before_its_last_answers_keeps_what_was_known() -> None:
    host = Host(100_000)
    host.burst()
    host.now += NS
    host.ask()
    host.watch.burst()
    offset = host.watch.offset()
    assert offset is not None
    assert offset.uncertainty_ns < 1_000_000
    assert host.watch.drift_ppm() is None


def test_a_host_that_answers_slowly_is_asked_more_often_for_a_while() -> None:
    host = Host(2_000_000)
    asked = host.burst()
    assert EXCHANGES < asked < 2 * NS / 4_000_000
    assert host.now < NS


def test_over_a_long_way_a_few_exchanges_are_enough_and_a_short_wave_tells_no_drift() -> None:
    host = Host(200_000_000)
    assert host.burst() < EXCHANGES
    host.now += NS
    host.burst()
    offset = host.watch.offset()
    assert offset is not None
    assert abs(offset.offset_ns - OFFSET) <= offset.uncertainty_ns
    assert host.watch.drift_ppm() is None
