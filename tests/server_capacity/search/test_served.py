"""The rate that a saturated endpoint serves, where no other limit gives out before it keeps up no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from server_capacity.search.estimate import answer
from server_capacity.search.limits import Limit
from server_capacity.search.pace import least_answer_s, overloaded, pace_of, served_of
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Count, Slice, Stretch
from tests.server_capacity.search.queues import Queue, play

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

SUCCESS = Limit("success>=0.95", "success", 0.05)
MINUTE = Settings(time_s=60.0)
NEAR_S = 8.0


def exactly(draw: random.Random) -> float:
    return 0.02


def exponential(draw: random.Random) -> float:
    return draw.expovariate(50.0)


def at(rate: float, completed: float, purpose: str, number: int = 0) -> Stretch:
    """Eight seconds at a rate, of which so many requests/s were completed, each after 20 ms at first."""
    start_s = number * NEAR_S
    sent, waiting = round(rate), round((rate - completed) * NEAR_S)
    slices = tuple(
        Slice(start_s + place, start_s + place + 1, sent, sent, (Count(sent, 0),), 0.02 * sent)
        for place in range(int(NEAR_S))
    )
    return Stretch(number, rate, start_s, start_s + NEAR_S, slices, purpose, in_flight=waiting)


def growing(rate: float, served: float, seconds: int = 4) -> Stretch:
    """The queue of an endpoint that serves far less, empty at first."""
    more = rate / served - 1.0
    slices = tuple(
        Slice(place, place + 1, round(rate), round(rate), (Count(round(rate), 0),), rate * more * (place + 0.5))
        for place in range(seconds)
    )
    return Stretch(0, rate, 0.0, seconds, slices, "grow", in_flight=round((rate - served) * seconds))


@pytest.mark.parametrize(("servers", "service"), [(4, exactly), (4, exponential), (1, exponential)])
def test_the_rate_that_is_kept_up_with_is_not_the_best_of_many_short_stretches(
    servers: int, service: Callable[[random.Random], float]
) -> None:
    found = [play(Queue(servers, service), [SUCCESS], MINUTE, seed).answer for seed in range(6)]
    intervals = [each.interval for each in found if each.interval is not None]
    assert len(intervals) == len(found)
    assert sum(0 < each.low < 50 * servers for each in intervals) >= len(found) - 1
    assert sum(each.low <= 50 * servers <= each.high for each in intervals) >= len(found) - 1
    assert [each.islands for each in found if each.islands] == []


def test_stretches_at_which_more_arrives_count_together_however_much_each_completed() -> None:
    near = [at(110.0, completed, "above", number + 1) for number, completed in enumerate((90, 95, 100, 105, 110))]
    served = served_of([at(200.0, 100.0, "grow"), *near], pace_of([at(200.0, 100.0, "grow"), *near]))
    assert served is not None
    assert served.rate == pytest.approx(100.0, rel=0.02)


def test_two_overloaded_rates_in_a_row_leave_no_rate_that_was_kept() -> None:
    found = answer([SUCCESS], MINUTE, [growing(480.0, 200.0)])
    assert found.outcome == "cannot_tell"
    assert found.reason == (
        "at 480/s requests arrive faster than they are answered: give a lower --start-rps, or more with --time"
    )


@pytest.mark.parametrize("rate", [500.0, 2000.0])
def test_a_time_that_only_a_backlog_makes_long_is_not_that_of_an_answer(rate: float) -> None:
    stretch = growing(rate, 200.0)
    assert least_answer_s([stretch]) < 0.5
    assert overloaded(stretch, least_answer_s([stretch]))


def test_a_few_fast_answers_at_low_rates_tell_more_than_many_that_waited() -> None:
    low, high = at(1.5, 1.5, "grow"), at(190.0, 189.0, "grow", 1)
    slow = [Slice(each.start_s, each.end_s, 190, 190, each.counts, 190 * 4.0) for each in high.slices]
    assert least_answer_s([low, Stretch(1, 190.0, 8.0, 16.0, tuple(slow), "grow", 1.5, 700)]) == pytest.approx(0.02)
