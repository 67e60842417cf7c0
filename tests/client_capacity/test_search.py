"""The search for the highest rate held, against workers whose capacity is known."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_capacity.search import LEAST_RATE, Cause, HighestRate, Phase, SearchSettings, Step, search
from client_capacity.staircase import staircase

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 45


class Simulated:
    """A worker that holds a rate below its capacity, which a noisy machine lowers by chance.

    Below ``endpoint`` answers come as they are asked for; at most that many come a second.
    """

    def __init__(
        self,
        capacity: float,
        *,
        noise: float = 0.0,
        hiccups: float = 0.0,
        endpoint: float = math.inf,
        errors_above: float = math.inf,
        seed: int = 1,
    ) -> None:
        self._capacity = capacity
        self._noise = noise
        self._hiccups = hiccups
        self._endpoint = endpoint
        self._errors_above = errors_above
        self._random = random.Random(seed)

    def __call__(self, rate: float, phase: Phase) -> Step:
        cause = self._cause(rate)
        completed = min(rate, self._endpoint, self._capacity)
        return Step(phase, rate, cause, completed_rate=completed, worker_cpu_share=min(1.0, rate / self._capacity))

    def _cause(self, rate: float) -> Cause | None:
        if self._random.random() < self._hiccups:
            return "client"
        if rate > self._capacity * math.exp(self._random.gauss(0, self._noise)):
            return "client"
        if rate > self._errors_above:
            return "errors"
        return "server" if rate > self._endpoint else None


def find(worker: Callable[[float, Phase], Step], **options: float) -> HighestRate:
    return search(worker, SearchSettings(**options))  # type: ignore[arg-type]


capacities = st.floats(1, 19_000)


@given(capacities)
def test_the_capacity_of_a_quiet_worker_is_found_to_2_percent(capacity: float) -> None:
    found = find(Simulated(capacity))
    assert found.limited_by == "client"
    assert found.rate == pytest.approx(capacity, rel=0.02)
    assert found.high is not None
    assert found.low <= capacity <= found.high
    assert len(found.steps) <= STEPS


@given(capacities, st.integers(0, 1000))
def test_noise_of_2_percent_moves_it_by_less_than_10(capacity: float, seed: int) -> None:
    found = find(Simulated(capacity, noise=0.02, seed=seed))
    assert found.rate == pytest.approx(capacity, rel=0.1)
    assert len(found.steps) <= STEPS


def test_of_many_noisy_searches_nearly_all_intervals_hold_the_capacity() -> None:
    found = [find(Simulated(1000, noise=0.02, seed=seed)) for seed in range(300)]
    assert sum(one.low <= 1000 <= (one.high or 0) for one in found) >= 0.85 * len(found)
    assert sum(one.rate == pytest.approx(1000, rel=0.05) for one in found) >= 0.95 * len(found)


def test_hiccups_in_one_step_of_ten_hardly_move_it() -> None:
    found = [find(Simulated(1000, noise=0.005, hiccups=0.1, seed=seed)) for seed in range(300)]
    assert sum(one.rate == pytest.approx(1000, rel=0.1) for one in found) >= 0.95 * len(found)


@given(capacities)
def test_without_repeats_the_interval_is_what_was_held_and_what_was_not(capacity: float) -> None:
    found = find(Simulated(capacity), repeats=0)
    assert found.high is not None
    assert found.rate == found.low <= capacity <= found.high <= 1.041 * found.low
    assert not any(step.phase == "repeating" for step in found.steps)


@given(capacities, st.floats(1, 100_000), st.floats(1.1, 3))
def test_a_start_far_off_finds_the_same(capacity: float, start: float, growth: float) -> None:
    found = find(Simulated(capacity), start=start, growth=growth, max_rate=200_000)
    assert found.rate == pytest.approx(capacity, rel=0.02)


def test_rates_grow_fast_while_the_worker_is_idle() -> None:
    found = find(Simulated(1000), repeats=0)
    assert [step.rate for step in found.steps[:6]] == [8, 32, 128, 256, 512, 1024]
    assert {step.phase for step in found.steps[:6]} == {"growing"}


def test_a_rate_that_is_not_held_is_tried_again_before_it_counts() -> None:
    failures = iter([False, True, False] + [False] * 100)

    def hiccup(rate: float, phase: Phase) -> Step:
        return Step(phase, rate, "client" if next(failures) else None, completed_rate=rate, worker_cpu_share=0.5)

    found = find(hiccup, max_rate=32)
    assert [step.rate for step in found.steps] == [8, 16, 16, 32]
    assert (found.limited_by, found.rate) == ("max_rps", 32)


def test_a_step_in_which_others_took_the_core_is_tried_more_often() -> None:
    def busy(rate: float, phase: Phase) -> Step:
        return Step(phase, rate, "client" if rate > 100 else None, completed_rate=rate, disturbed=True)

    steps = [step for step in find(busy).steps if step.phase == "growing" and not step.held]
    assert [step.rate for step in steps] == [128] * 4


@pytest.mark.parametrize("bad", [range(5, 7), range(5, 16), range(1, 3), range(8, 17)])
def test_a_while_in_which_nothing_is_held_does_not_end_the_search_too_low(bad: range) -> None:
    worker = Simulated(1000)
    count = 0

    def disturbed(rate: float, phase: Phase) -> Step:
        nonlocal count
        count += 1
        return Step(phase, rate, "client", worker_cpu_share=0.5) if count in bad else worker(rate, phase)

    assert find(disturbed).rate == pytest.approx(1000, rel=0.02)


def test_the_most_that_is_tried_is_at_least_what_the_worker_holds() -> None:
    found = find(Simulated(1e9), max_rate=1000)
    assert (found.limited_by, found.rate, found.low, found.high) == ("max_rps", 1000, 1000, None)
    assert max(step.rate for step in found.steps) == 1000


@given(capacities, st.floats(0.05, 0.9))
def test_where_the_endpoint_limits_the_worker_holds_at_least_that(capacity: float, share: float) -> None:
    endpoint = max(1.0, capacity * share)
    found = find(Simulated(capacity, endpoint=endpoint), start=4)
    if found.limited_by == "server":
        assert found.rate == pytest.approx(endpoint)
        assert found.high is None
    else:
        assert endpoint >= 0.9 * capacity


def test_an_endpoint_of_the_clients_own_capacity_is_either() -> None:
    found = find(Simulated(1000, endpoint=990))
    assert found.limited_by in ("client", "server")
    assert found.rate == pytest.approx(1000, rel=0.05)


def test_failing_requests_end_the_search() -> None:
    found = find(Simulated(1000, errors_above=100))
    assert (found.limited_by, found.rate) == ("errors", 128)
    assert [step.cause for step in found.steps[-2:]] == ["errors", "errors"]
    assert find(Simulated(1000, endpoint=0, errors_above=0)).rate == 0


def test_a_worker_that_holds_nothing_holds_nothing() -> None:
    found = find(Simulated(0.1))
    assert (found.limited_by, found.rate, found.high) == ("client", 0, LEAST_RATE)
    assert found.steps[-1].phase == "shrinking"


@pytest.mark.parametrize("after", [1, 5, 12, 20])
def test_an_interrupt_keeps_what_was_found(after: int) -> None:
    worker = Simulated(1000)
    count = 0

    def interrupted(rate: float, phase: Phase) -> Step:
        nonlocal count
        count += 1
        if count > after:
            raise KeyboardInterrupt
        return worker(rate, phase)

    found = find(interrupted)
    assert (found.limited_by, found.high, len(found.steps)) == ("interrupted", None, after)
    assert found.rate == max(step.rate for step in found.steps if step.held)


def test_an_interrupt_before_the_first_step_is_one() -> None:
    def interrupted(rate: float, phase: Phase) -> Step:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find(interrupted)


def test_what_comes_next_is_said() -> None:
    said: list[str] = []
    search(Simulated(1000), SearchSettings(), said.append)
    assert [line.split()[0] for line in said] == ["Doubling", "Bisecting", "Repeating"]


def test_a_series_that_swings_between_two_levels_lies_between_them() -> None:
    low, rate, high = staircase([100, 103, 100, 103, 100, 103, 100, 103, 100], 1.03)
    assert low <= 100 < rate < 103 <= high


@settings(max_examples=50)
@given(st.lists(st.booleans(), min_size=4, max_size=30))
def test_the_estimate_lies_in_its_interval(ups: list[bool]) -> None:
    levels = [100.0]
    for up in ups:
        levels.append(levels[-1] * (1.03 if up else 1 / 1.03))
    low, rate, high = staircase(levels, 1.03)
    assert low < rate < high
