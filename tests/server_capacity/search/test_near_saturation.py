"""Many requests near saturation, where a queue needs longer than a stretch to settle."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from inference_benchmarker.summary.statistics.burst_counts import inverse_gaussian, negative_binomial
from server_capacity.search.curve import FINE
from server_capacity.search.limit_bracket import fit_from, known_of
from server_capacity.search.limits import Limit
from server_capacity.search.pace import Pace, pace_of
from server_capacity.search.points import SATURATED, Point, whole_bursts
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Count
from tests.server_capacity.search.runs import run

P99 = Limit("p99<120ms", "response_time", 0.01, 0.12)
FAST = Pace(0.02, 20_000.0, 0.03, 0.005)  # 400 exponential servers of 20 ms


def point(rate: float, share: float, seconds: float = 14.0) -> Point:
    of, blocks = int(rate * seconds), 8 if share < SATURATED else 1
    each = int(share * of / blocks)
    return Point(rate, of, each * blocks, (each,) * blocks, seconds)


@pytest.mark.parametrize("count", [50, 400, 5_000, 100_000])
def test_bursts_of_many_requests_are_as_likely_as_they_are(count: int) -> None:
    mean, beyond = 1.3 * count, np.geomspace(1.0, 900.0, 40)
    likely = negative_binomial([count], np.log(np.full_like(beyond, mean)), beyond)
    exact = [
        math.lgamma(count + mean / each)
        - math.lgamma(mean / each)
        + count * math.log(each / (1.0 + each))
        - mean / each * math.log1p(each)
        for each in beyond
    ]
    assert likely == pytest.approx(exact, abs=0.02 + 1e-5 * count)


def test_both_kinds_of_bursts_change_smoothly_with_their_mean() -> None:
    means = np.linspace(math.log(300.0), math.log(500.0), 400)
    for kind in (negative_binomial, inverse_gaussian):
        bends = np.diff(kind([400], means, np.full_like(means, 30.0)), 2)
        assert bends.min() > 5.0 * bends.max()
        assert bends.max() < 0.0


def test_a_rate_that_is_kept_counts_however_steep_the_curve_may_be() -> None:
    points = [point(10_000.0, 0.0025), point(19_484.0, 0.0025), point(21_839.0, 0.85), point(23_170.0, 0.66, 2.0)]
    found = fit_from(P99, points, FAST, (19_484.0, 20_628.0), FINE)
    assert 19_300.0 < found.rate < 21_839.0


def test_an_interval_reaches_below_what_no_stretch_was_long_enough_to_settle_at() -> None:
    rates = {19_800.0: 0.003, 19_940.0: 0.0043, 20_000.0: 0.0075, 20_050.0: 0.012, 20_100.0: 0.025, 20_200.0: 0.1}
    short, long = (
        fit_from(P99, [point(rate, share, seconds) for rate, share in rates.items()], FAST, (20_000.0, 20_020.0), FINE)
        for seconds in (8.0, 8_000.0)
    )
    assert short.interval.low < 0.996 * short.rate
    assert (long.rate - long.interval.low) / long.rate < (short.rate - short.interval.low) / short.rate


def test_a_queue_settles_at_a_load_in_the_time_in_which_it_forgets() -> None:
    pace = Pace(0.0, 200.0)
    assert pace.relaxation_s(200.0 * pace.settled_load(3.0)) == pytest.approx(3.0)


def test_a_short_block_has_a_part_of_its_bursts() -> None:
    parts = [whole_bursts(seconds, 0.8) for seconds in (0.0, 0.08, 0.8, 8.0, 8000.0)]
    assert parts == pytest.approx([0.0, 0.0484, 0.3679, 0.9, 0.9999], abs=0.0001)


def test_servers_that_share_their_time_complete_more_when_they_keep_up_than_when_they_are_overloaded() -> None:
    *calm, kept, overloaded = run(
        ("grow", 90.0, 8.0, 0.0), ("grow", 180.0, 8.0, 0.0), ("grow", 900.0, 8.0, 0.0), ("grow", 1800.0, 8.0, 0.9)
    )
    overloaded = replace(overloaded, in_flight=8_000)  # of 14,400, which complete 800 a second
    assert pace_of([*calm, overloaded]).most == pytest.approx(800, rel=0.01)
    most = pace_of([*calm, kept, overloaded]).most
    assert most is not None
    assert 870 < most < 900


def test_a_backlog_that_a_stretch_inherits_is_completed_too() -> None:
    """By 400 servers of a second: of 3,200 requests 1,200 in their stretch, and 1,600 of them and the next 6,400."""
    calm, first, second = run(("grow", 40.0, 8.0, 0.0), ("grow", 800.0, 4.0, 0.0), ("grow", 1600.0, 4.0, 1.0))
    calm, first, second = (
        replace(each, slices=tuple(replace(part, spent_s=mean_s * part.answered) for part in each.slices))
        for each, mean_s in ((calm, 1.0), (first, 3.0), (second, 9.0))
    )
    by_due_time = [calm, replace(first, in_flight=2_000), replace(second, inherited=2_000, in_flight=6_800)]

    late = [replace(part, sent=0, answered=400, counts=(Count(400, 400),)) for part in second.slices]
    own = [replace(part, answered=400 if place else 0) for place, part in enumerate(first.slices)]
    none = [replace(part, answered=0) for part in second.slices]
    as_they_come = [calm, replace(first, slices=(*own, *late)), replace(second, slices=tuple(none))]

    for stretches in (by_due_time, as_they_come):
        assert pace_of(stretches).most == pytest.approx(380, rel=0.03)


def test_counts_outweigh_a_saturation_that_was_taken_for_too_low() -> None:
    points = [point(rate, share) for rate, share in {17e3: 0.0, 18e3: 0.0, 19e3: 0.0, 22e3: 0.8}.items()]
    found = fit_from(P99, points, replace(FAST, most=17_000.0), (18_500.0, 20_000.0), FINE)
    assert found.rate > 19_000.0
    assert 20_500.0 < found.interval.high < 22_000.0


def test_what_is_refused_is_not_completed() -> None:
    *calm, refusing = run(*[("grow", rate, 8.0, 0.0) for rate in (10.0, 20.0, 40.0)], ("grow", 400.0, 8.0, 0.5))
    refusing = replace(refusing, in_flight=800)  # of 3,200, of which 1,600 are refused
    assert pace_of([*calm, refusing]).most == pytest.approx(300, rel=0.01)
    assert pace_of([*calm, refusing], failing=0).most == pytest.approx(100, rel=0.01)
    *_, keeping_up = known_of([Limit("success>=0.4", "success", 0.6)], Settings(), [*calm, refusing])
    assert keeping_up.rate == pytest.approx(100, rel=0.01)
