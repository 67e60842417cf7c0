"""A rate that is changed while it runs: the same arrivals as if all had been known, whoever hears of it when."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice, pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.load import MAX_STAGES, Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.plan.schedule import NO_END
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.plan.steering import MS, RateChange, as_offered, can_be_offered, rate_at
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.plan.load import Arrivals

LEAD = 120 * MS
RATES = [Decimal(text) for text in ("0", "0.5", "7.3", "90.9", "333", "1210")]


def changes_of(random: Random, number: int) -> list[RateChange]:
    """Changes at random instants, of which some are sent before others that were sent earlier are in force."""
    instants = sorted(random.sample(range(1, number * 60), number))
    return [RateChange(LEAD + at * MS, random.choice(RATES)) for at in instants]


def steered_plan(arrivals: Arrivals = "constant", *, workers: int = 1, warmup_s: str = "0") -> WavePlan:
    load = OpenLoop(Decimal(100), arrivals, steered=True)
    return WavePlan(load, Bounds(), seed=5, workers=workers, warmup_s=Decimal(warmup_s))


def consumed(
    plan: WavePlan, worker: int, changes: Sequence[RateChange], end_ns: int, random: Random
) -> list[tuple[int, int]]:
    """The arrivals that a worker hands over which hears of each change at some instant before it is in force."""
    stripe = TokenBucket.of(plan).open_stripe(worker)
    arrivals = stripe.arrivals()
    held, handed, heard = next(arrivals), [], 0
    for change in changes:
        heard = random.randrange(max(heard, change.at_ns - LEAD), change.at_ns)
        while held[1] <= heard:
            handed.append(held)
            held = next(arrivals)
        arrivals = stripe.changed(change.at_ns, change.rate, held[0])
        held = next(arrivals)
    while held[1] < end_ns:
        handed.append(held)
        held = next(arrivals)
    return handed


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
@pytest.mark.parametrize(("seed", "number"), [(1, 100), (2, 100), (3, MAX_STAGES - 1)])
def test_changes_at_random_instants_give_the_arrivals_of_the_same_stages(
    arrivals: Arrivals, seed: int, number: int
) -> None:
    changes = changes_of(Random(seed), number)
    end = changes[-1].at_ns + NS
    offered = as_offered(steered_plan(arrivals, warmup_s="0.5"), changes, end)
    assert problems_of_values(offered) == []
    expected = [tuple(arrival) for arrival in TokenBucket.of(offered).arrivals(0)]
    for workers in (1, 2, 5):
        plan, random = steered_plan(arrivals, workers=workers, warmup_s="0.5"), Random(seed)
        stripes = [consumed(plan, worker, changes, end, random) for worker in range(workers)]
        assert sorted(each for stripe in stripes for each in stripe) == expected
    assert all(a[0] + 1 == b[0] and a[1] <= b[1] for a, b in pairwise(expected))
    assert next(a[0] for a in expected if a[1] >= 0) == 0


def test_there_is_no_gap_and_no_burst_at_a_border() -> None:
    """One unit of area lies between an arrival and the next, over all borders, to the nanosecond of a due time."""
    changes = changes_of(Random(4), 300)
    schedule = OpenLoop(Decimal(100), steered=True).schedule
    for change in changes:
        schedule = schedule.changed(change.at_ns, change.rate)
    ends = [*schedule.segments[1:], None]
    area = Fraction(0)
    for segment, following in zip(schedule.segments, ends, strict=True):
        assert segment.before == area
        if following is not None:
            area += segment.from_rps * (following.start_ns - segment.start_ns) / NS
    for index, due in schedule.dues(0, 1, schedule.count(changes[-1].at_ns)):
        assert schedule.area(due) <= index < schedule.area(due + 1) or schedule.area(due) == index


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_a_pause_keeps_the_next_arrival_waiting_until_the_rate_comes_back(arrivals: Arrivals) -> None:
    stripe = TokenBucket.of(steered_plan(arrivals, workers=2)).open_stripe(1)
    held = next(stripe.arrivals())
    waiting = list(stripe.changed(NS // 2, Decimal(0), held[0]))
    assert waiting[-1][1] == NO_END
    assert waiting[-2][1] < NS // 2
    again = next(stripe.changed(20 * NS, Decimal(10), waiting[-1][0]))
    assert again[0] == waiting[-1][0]
    assert 20 * NS <= again[1] < 22 * NS


def test_a_bound_holds_whatever_the_rate_and_what_is_beyond_it_may_still_come_before_it() -> None:
    plan = replace(steered_plan(), bounds=Bounds(Decimal(2)))
    stripe = TokenBucket.of(plan).open_stripe(0)
    slow = list(stripe.changed(NS, Decimal("0.1"), 0))
    assert [slow[-1], slow[-2][1]] == [(101, NO_END), NS]
    fast = list(stripe.changed(NS + NS // 2, Decimal(100), 101))
    assert NS + NS // 2 < fast[0][1] < fast[-2][1] < 2 * NS
    assert fast[-1][1] == NO_END


def test_hearing_of_a_change_in_the_warm_up_repeats_nothing_of_it() -> None:
    plans = (steered_plan("constant", workers=2, warmup_s="1"), steered_plan("poisson", workers=2, warmup_s="1"))
    for plan in plans:
        bucket = TokenBucket.of(plan)
        whole = [tuple(each) for each in islice(bucket.arrivals(0), 120)]
        stripe = bucket.open_stripe(0)
        handed = list(islice(stripe.arrivals(), 7))
        rest = stripe.changed(10 * NS, Decimal(1), whole[7][0])
        assert handed + list(islice(rest, 113)) == whole


def test_a_rate_is_changed_ahead_and_never_within_what_is_settled() -> None:
    schedule = OpenLoop(Decimal(5), steered=True).schedule.changed(3 * MS, Decimal(6))
    assert [segment.to_rps for segment in schedule.changed(3 * MS, Decimal(7)).segments] == [5, 7]
    for wrong in (schedule, OpenLoop(stages=(Stage.parse("5:1s"),)).schedule):
        with pytest.raises(ValueError, match="cannot be changed"):
            wrong.changed(2 * MS, Decimal(6))


def test_hearing_far_too_late_is_an_error_not_another_wave() -> None:
    stripe = TokenBucket.of(steered_plan("poisson")).open_stripe(0)
    list(islice(stripe.arrivals(), 500))
    with pytest.raises(ValueError, match="is not kept"):
        next(stripe.changed(6 * NS, Decimal(7), 3))


class TestWhatWasOffered:
    def test_it_is_reported_as_stages_that_end_with_the_wave(self) -> None:
        changes = [RateChange(2 * NS, Decimal(110)), RateChange(3 * NS + 4 * MS, Decimal(55))]
        found = as_offered(steered_plan(), changes, 5 * NS - 1)
        assert isinstance(found.load, OpenLoop)
        assert found.load.text == "100:2s, 110:1.004s, 55:1.996s"
        assert [problems_of_values(found), found.bounds] == [[], Bounds(Decimal(5))]
        assert WavePlan.from_json(found.to_json()) == found
        assert as_offered(found, changes, 9 * NS) == found

    def test_a_change_after_the_end_was_never_offered(self) -> None:
        found = as_offered(steered_plan(), [RateChange(NS, Decimal(7))], NS)
        assert isinstance(found.load, OpenLoop)
        assert found.load.text == "100:1s"

    def test_a_wave_that_ended_before_it_began_has_the_shortest_stage_there_is(self) -> None:
        assert problems_of_values(as_offered(steered_plan(), [], -5)) == []

    def test_a_limit_may_be_that_of_a_stage_that_is_not_known_yet(self) -> None:
        plan = replace(steered_plan(), slos=(Slo.parse("2:p99<500ms"),))
        assert problems_of_values(plan) == []
        assert problems_of_values(as_offered(plan, [], NS)) == []
        named = replace(plan, slos=(Slo.parse("spike:p99<500ms"),))
        assert ["there is no stage spike" in each.text for each in problems_of_values(named)] == [True]


def test_the_rate_at_an_instant_is_that_of_the_last_change_by_then() -> None:
    load, changes = steered_plan().load, [RateChange(NS, Decimal(7)), RateChange(2 * NS, Decimal(0))]
    assert [rate_at(load, changes, at) for at in (-NS, NS - 1, NS, 3 * NS)] == [100, 100, 7, 0]
    assert rate_at(OpenLoop(stages=(Stage.parse("0..10:2s"),)), [], NS) == 5
    assert rate_at(ClosedLoop(3), [], NS) is None


class TestPlan:
    def test_it_needs_no_bound_and_may_have_an_upper_one(self) -> None:
        assert problems_of_values(steered_plan()) == []
        assert problems_of_values(replace(steered_plan(), bounds=Bounds(Decimal(3)))) == []
        found = problems_of_values(replace(steered_plan(), bounds=Bounds(num_requests=3)))
        assert ["leave --num-requests out" in each.text for each in found] == [True]

    def test_it_survives_a_file_and_an_older_one_has_no_such_load(self) -> None:
        plan = steered_plan()
        assert WavePlan.from_json(plan.to_json()) == plan
        data = plan.to_json()
        del data["load"]["steered"]
        assert WavePlan.from_json({**data, "bounds": {"duration_s": "3", "num_requests": None}}).load == OpenLoop(
            Decimal(100)
        )

    def test_what_may_be_offered_is_what_a_stage_may_have(self) -> None:
        rates = ("0", "0.000001", "1000000", "1000001", "-1", "NaN", "0.0000001")
        assert [can_be_offered(Decimal(text)) for text in rates] == [True, True, True, False, False, False, False]
