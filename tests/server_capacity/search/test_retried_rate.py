"""An endpoint that was slower at first is distinguished from one that is slow, and from one that remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from server_capacity.search.limits import Limit
from server_capacity.search.retried_rate import (
    AGAIN,
    COMPARE,
    to_compare,
    to_try_again,
    without_accidents,
    without_warm_up,
)
from server_capacity.search.settings import Settings
from tests.mentions import mentions
from tests.server_capacity.search.queues import Queue, play
from tests.server_capacity.search.runs import run

if TYPE_CHECKING:
    from random import Random

    from server_capacity.search.stretch import Stretch

P95 = Limit("p95<75ms", "response_time", 0.05, 0.075)
P99 = Limit("p99<100ms", "response_time", 0.01, 0.1)
COURSE = (
    ("grow", 32.0, 3, 0.0),
    ("grow", 64.0, 3, 0.6),
    ("below", 50.0, 8, 0.01),
    (AGAIN, 64.0, 8, 0.0),
    (COMPARE, 32.0, 3, 0.0),
    ("grow", 128.0, 3, 0.0),
)


def course(early_s: float, late_s: float, parts: int = len(COURSE)) -> list[Stretch]:
    """The search's course, whose answers took so long before and after what ended growth was tried again."""
    return [
        replace(
            stretch,
            slices=tuple(
                replace(part, spent_s=part.answered * (early_s if place < 3 else late_s)) for part in stretch.slices
            ),
        )
        for place, stretch in enumerate(run(*COURSE[:parts]))
    ]


def test_the_rate_that_ended_growth_is_tried_again_and_a_lower_one_for_the_time_of_its_answers() -> None:
    assert to_try_again([P95], course(0.06, 0.02, 3)) == 64.0
    assert to_try_again([P95], course(0.06, 0.02, 1)) is None
    assert to_compare([P95], course(0.06, 0.02, 4)) == 32.0
    broken = run(*COURSE[:3], (AGAIN, 64.0, 8, 0.6))
    assert to_compare([P95], broken) is None


def test_what_was_measured_before_the_endpoint_was_warm_counts_for_nothing_and_says_why() -> None:
    found = without_warm_up([P95], course(0.06, 0.02))

    assert [bool(stretch.void) for stretch in found] == [True, True, True, False, False, False]
    assert mentions(found[0].void, "32/s", "60 ms", "20 ms")
    assert without_warm_up([P95], found) == found


def timed(*parts: tuple[str, float, float]) -> list[Stretch]:
    """Stretches of eight seconds at a rate, whose answers took so long."""
    made = run(*[(purpose, rate, 8.0, 0.0) for purpose, rate, _ in parts])
    return [
        replace(each, slices=tuple(replace(part, spent_s=part.answered * mean_s) for part in each.slices))
        for each, (_, _, mean_s) in zip(made, parts, strict=True)
    ]


def test_an_endpoint_was_slower_at_first_where_rates_on_either_side_are_faster_later() -> None:
    found = without_warm_up(
        [P95], timed(("grow", 2.0, 0.06), ("bisect", 4.0, 0.06), ("below", 8.0, 0.02), ("beneath", 3.0, 0.02))
    )

    assert [bool(each.void) for each in found] == [True, True, False, False]
    assert mentions(found[0].void, "at 4/s", "60 ms", "later at 8/s", "20 ms")


def test_a_few_answers_at_each_rate_tell_together_that_the_endpoint_was_slower_at_first() -> None:
    cold, warm = [("grow", 0.5, 0.08)] * 2, [(AGAIN, 0.5, 0.02), ("beneath", 0.5, 0.02)]

    assert [bool(each.void) for each in without_warm_up([P95], timed(*cold, *warm))] == [True, True, False, False]
    fewer = timed(*[(purpose, rate / 2, mean_s) for purpose, rate, mean_s in cold + warm])
    assert without_warm_up([P95], fewer) == tuple(fewer)


def test_what_lies_between_the_last_slow_and_the_first_fast_answers_counts_for_nothing() -> None:
    """At 8/s nothing was sent later to compare, and its backlog looked like the endpoint's limit."""
    stretches = timed(("grow", 4.0, 0.06), ("grow", 8.0, 0.3), ("below", 5.0, 0.02), ("beneath", 4.0, 0.02))

    assert [bool(each.void) for each in without_warm_up([P95], stretches)] == [True, True, False, False]


def test_an_endpoint_that_was_as_fast_before_was_not_slower_at_first() -> None:
    """A burst near the answer of one that got slower was taken for a slow start, and all before it was discarded."""
    before, burst = [("grow", 4.0, 0.02), ("grow", 8.0, 0.02)], [("bisect", 6.0, 0.1)]
    stretches = timed(*before, *burst, ("above", 7.0, 0.02), ("below", 5.0, 0.02))

    assert without_warm_up([P95], stretches) == tuple(stretches)


@pytest.mark.parametrize(
    "later",
    [
        (("below", 8.0, 0.02), ("beneath", 6.0, 0.02)),  # batches that fill: no lower rate is faster
        (("below", 3.0, 0.02), ("beneath", 2.0, 0.02)),  # load: no higher rate is faster
        (("below", 8.0, 0.05), ("beneath", 3.0, 0.05)),  # hardly faster
    ],
)
def test_where_load_explains_that_answers_are_faster_nothing_is_left_out(
    later: tuple[tuple[str, float, float], ...],
) -> None:
    stretches = timed(("grow", 3.5, 0.06), ("bisect", 4.0, 0.06), *later)

    assert without_warm_up([P95], stretches) == tuple(stretches)


@pytest.mark.parametrize(("early_s", "late_s"), [(0.02, 0.02), (0.02, 0.015), (0.02, 0.06), (0.0, 0.0)])
def test_where_answers_are_not_faster_nothing_is_left_out(early_s: float, late_s: float) -> None:
    assert without_warm_up([P95], course(early_s, late_s)) == tuple(course(early_s, late_s))


def test_an_accident_while_the_rate_grew_counts_for_nothing_once_its_rate_was_kept() -> None:
    kept = run(("grow", 64.0, 3, 0.0), ("grow", 128.0, 3, 0.3), ("below", 90.0, 8, 0.0), (AGAIN, 128.0, 8, 0.01))
    broken = [*kept[:3], *run(("drain", 0.0, 46, 0.0), (AGAIN, 128.0, 8, 0.1))[1:]]

    assert [each.void for each in without_accidents([P95], kept)] == [
        "",
        "128/s met every limit when it was tried again later",
        "",
        "",
    ]
    assert without_accidents([P95], broken) == tuple(broken)


def test_an_accident_takes_what_was_over_at_lower_rates_before_it_with_it() -> None:
    """An endpoint that was slower at first broke the limit there, too, so that its retried rate seemed kept by luck."""
    stretches = run(("grow", 32.0, 3, 0.2), ("grow", 64.0, 3, 0.3), ("below", 50.0, 8, 0.0), (AGAIN, 64.0, 8, 0.0))

    assert [bool(each.void) for each in without_accidents([P95], stretches)] == [True, True, False, False]


def test_a_rate_that_was_kept_by_luck_leaves_growth_as_it_was() -> None:
    """Where the share over is twice what is allowed a short stretch has nothing over at times, by its bursts."""
    near = (("below", 52.0, 12, 0.01), ("above", 56.0, 12, 0.012))
    course = run(("grow", 32.0, 3, 0.0), ("grow", 64.0, 3, 0.06), *near, (AGAIN, 64.0, 8, 0.0))

    assert without_accidents([P99], course) == tuple(course)


class Stalling(Queue):
    """All stand still once, for a fifth of a second."""

    stall_s = 0.0

    def answered_at(self, at_s: float, draw: Random) -> float:
        """A request that comes meanwhile waits for its end."""
        end_s = self.stall_s + 0.2
        return super().answered_at(end_s if self.stall_s < at_s < end_s else at_s, draw)


@pytest.mark.parametrize(("stall_s", "rate"), [(5.0, 200 / 3), (6.6, 400 / 3)])
def test_one_stall_while_the_rate_grows_does_not_hold_the_search_below_it(stall_s: float, rate: float) -> None:
    """One that many requests met was told as a server that remembers, with the rate below the stall: 94 of 174/s."""
    queue = Stalling(4, lambda _: 0.02)
    queue.stall_s = stall_s
    played = play(queue, [P99], Settings(), seed=1)

    assert [each.rate for each in without_accidents([P99], played.stretches) if each.void] == pytest.approx([rate])
    assert played.answer.interval is not None
    assert played.answer.interval.low < 174 < played.answer.interval.high
    assert played.answer.memory is None


class SlowStart(Queue):
    """Three times as slow for the first 20 s."""

    def answered_at(self, at_s: float, draw: Random) -> float:
        """The same, by when a request comes."""
        self.service = lambda _: 0.06 if at_s < 20 else 0.02
        return super().answered_at(at_s, draw)


@pytest.mark.parametrize("seconds", [60.0, 180.0])
def test_the_capacity_of_an_endpoint_that_starts_slowly_is_that_of_the_warm_one(seconds: float) -> None:
    """It was reported as 64/s: the most that four servers of 60 ms do, which they have long not been."""
    played = play(SlowStart(4, lambda _: 0.06), [P99], Settings(time_s=seconds), seed=2)

    assert played.answer.interval is not None
    assert played.answer.interval.low < 174 < played.answer.interval.high
    assert played.answer.interval.low > 100
