"""The offset of another host's clock, from exchanges whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.engine.hosts.clocks import EXCHANGES, ClockOffset, Exchange, clock_offset
from inference_benchmarker.words.units import NS

MS = NS // 1000
START = 5_000 * NS


@dataclass(frozen=True)
class Link:
    """Two clocks and the way between them: each way takes ``least`` ns and an exponential delay of ``mean`` ns."""

    seed: int
    offset: int
    drift: float = 0.0
    least: int = MS // 10
    mean: int = MS // 10
    jump: int = 0  # of their clock, in the middle of the minute

    def truth(self, ours: float) -> float:
        jumped = self.jump if ours > START + 30 * NS else 0
        return self.offset + self.drift * (ours - START) + jumped

    def exchange(self, random: Random, asked: int) -> Exchange:
        there, back = (self.least + round(random.expovariate(1 / self.mean)) for _ in range(2))
        heard, returned = asked + there, asked + there + 1_000 + back
        answered = heard + 1_000
        return Exchange(asked, round(heard + self.truth(heard)), round(answered + self.truth(answered)), returned)

    def minute(self) -> tuple[list[Exchange], list[Exchange], list[Exchange]]:
        """Before, during and after a wave of one minute."""
        random = Random(self.seed)
        before = [self.exchange(random, START - (n + 1) * 2 * MS) for n in range(EXCHANGES)]
        during = [self.exchange(random, START + n * NS) for n in range(60)]
        after = [self.exchange(random, START + 60 * NS + n * 2 * MS) for n in range(EXCHANGES)]
        return before, during, after


links = st.builds(
    Link,
    seed=st.integers(0, 2**32),
    offset=st.integers(-(10**15), 10**15),
    drift=st.floats(-2e-4, 2e-4),
    least=st.integers(1_000, 50 * MS),
    mean=st.integers(1_000, 20 * MS),
)


@given(links)
@settings(max_examples=60, deadline=None)
def test_the_offset_is_within_its_uncertainty_throughout_the_wave(link: Link) -> None:
    found = clock_offset(*link.minute())
    worst = max(abs(found.offset_at(START + n * NS) - link.truth(START + n * NS)) for n in range(61))
    assert worst <= found.uncertainty_ns + 2  # instants are whole ns
    assert found.jump_ns == 0


@given(links)
@settings(max_examples=30, deadline=None)
def test_before_the_wave_the_offset_is_within_half_the_least_round_trip(link: Link) -> None:
    before, _, _ = link.minute()
    found = clock_offset(before)
    assert found.uncertainty_ns >= found.round_trip_ns / 2
    assert abs(found.offset_at(START) - link.truth(START)) <= found.uncertainty_ns + 2e-4 * 70 * MS + 2


def test_the_drift_is_that_of_the_clock() -> None:
    found = clock_offset(*Link(seed=1, offset=10**12, drift=78e-6).minute())
    assert found.drift == pytest.approx(78e-6, abs=5e-6)
    assert found.offset_at(START + 60 * NS) - found.offset_at(START) == pytest.approx(60 * 78_000, rel=0.1)


def test_one_slow_answer_right_before_the_start_carries_no_start_away() -> None:
    """A line through it and the exchanges just before would be steeper than any two clocks are apart."""
    before, _, _ = Link(seed=4, offset=10**12).minute()
    asked = START + 5 * MS
    slow = Exchange(asked, asked + 10**12, asked + 10**12, asked + 40 * MS)  # all of it on the way back
    found = clock_offset(before, [slow])
    for ours in (START, START + 300 * MS):
        assert abs(found.offset_at(ours) - 10**12) <= found.uncertainty_ns + 1e-3 * 400 * MS


@pytest.mark.parametrize("jump", [-(10**9), -5 * MS, 5 * MS, 10**9])
def test_a_clock_that_jumps_is_seen(jump: int) -> None:
    found = clock_offset(*Link(seed=2, offset=-(10**9), jump=jump).minute())
    assert found.jump_ns == pytest.approx(abs(jump), abs=1.5 * MS)
    assert found.uncertainty_ns > abs(jump) / 4


def test_instants_are_carried_from_one_clock_to_the_other_and_back() -> None:
    clock = ClockOffset(START, 3.5e9, 1e5, 5e-5, MS, 2 * MS, 0.0)
    for ours in (START - NS, START, START + 3_600 * NS):
        assert clock.ours(clock.theirs(ours)) == pytest.approx(ours, abs=1)
    assert clock.theirs(START + NS) - clock.theirs(START) == NS + 50_000


def test_a_command_is_sent_three_of_the_longest_round_trips_ahead() -> None:
    link = Link(seed=3, offset=0, least=50 * MS)
    before, _, _ = link.minute()
    assert clock_offset(before).lead_ns == 3 * max(exchange.round_trip_ns for exchange in before)


def test_an_answer_that_took_less_than_no_time_leaves_its_clock_unknown() -> None:
    lies = [Exchange(START + n * MS, 0, NS, START + n * MS + MS // 2) for n in range(EXCHANGES)]
    offset = clock_offset(lies)
    assert offset.round_trip_ns == MS // 2 - NS
    assert offset.uncertainty_ns >= (NS - MS) / 2
    assert offset.lead_ns == 0


def test_without_exchanges_there_is_no_offset() -> None:
    with pytest.raises(ValueError, match="empty"):
        clock_offset([])
