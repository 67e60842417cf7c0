"""Limits on server metrics in a search: the rate at which each is reached, and which limit holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker.facts.server_metric import Hardware, ServerMetric
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.completions import Completions, Span
from server_capacity.experiments.server_side.server_attachment import with_limits_of_server
from server_capacity.experiments.server_side.server_limits import Measured, ServerEstimate, resources, server_estimates
from server_capacity.experiments.server_side.server_points import metric_series, points, stretch_values
from server_capacity.search.answer import Answer, Estimate, Interval
from tests.waves import observe, on_time, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts

RATES = (20.0, 60.0, 100.0, 140.0)
STAGE_S = 10
FOUR_CORES = Hardware("ml.m5.xlarge", 1, 4, 0)
DIMENSIONS = {"EndpointName": "e", "VariantName": "AllTraffic"}


def search() -> WaveFacts:
    """A wave of four stages, each request answered after 20 ms."""
    plan = staged(", ".join(f"{rate:g}:{STAGE_S}s" for rate in RATES))
    return observe(plan, on_time(plan))


def spans(facts: WaveFacts) -> tuple[Span, ...]:
    start = facts.window.start_unix_ns / NS
    return tuple(Span(start + place * STAGE_S, start + (place + 1) * STAGE_S) for place in range(len(RATES)))


def row(facts: WaveFacts, name: str, value_at: Callable[[float], float], **more: object) -> ServerMetric:
    """A metric of CloudWatch in buckets of 10 s, of one value for each stage's rate; idle before."""
    start = facts.window.start_unix_ns / NS
    series = [(start + STAGE_S * place, value_at(rate)) for place, rate in enumerate((0.0, *RATES), -1)]
    values = [value for _, value in series]
    given = ServerMetric(
        "cloudwatch",
        name,
        {"Average": float(np.mean(values)), "Maximum": max(values)},
        unit="Percent",
        namespace="/aws/sagemaker/Endpoints",
        dimensions=DIMENSIONS,
        start=start,
        end=start + 40,
        series_of="Average",
        series=tuple(series),
        hardware=FOUR_CORES,
    )
    return replace(given, **more)  # type: ignore[arg-type]


def sampled(facts: WaveFacts, name: str, value_at: Callable[[float], float], unit: str = "Ratio") -> ServerMetric:
    """A metric of a page, sampled once a second."""
    start = facts.window.start_unix_ns / NS
    series = tuple((start + at + 0.5, value_at(RATES[at // STAGE_S])) for at in range(40))
    return ServerMetric(
        "prometheus", name, {"Average": 0.5}, unit=unit, namespace="vllm", series_of="Average", series=series
    )


def measured(facts: WaveFacts, *rows: ServerMetric, without: tuple[Span, ...] = ()) -> Measured:
    return Measured(rows, Completions.of([facts]), spans(facts), without=without)


def estimate(text: str, reported: Measured) -> ServerEstimate:
    return server_estimates([ServerLimit.parse(text)], reported)[0]


def test_completions_are_counted_between_any_instants() -> None:
    facts = search()
    start = facts.window.start_unix_ns / NS
    completions = Completions.of([facts, facts])
    assert completions.between(start, start + 60) == (2 * 3_200.0, 0)
    assert completions.between(start + 20, start + 30)[0] == pytest.approx(2_000, abs=20)


def test_a_bucket_is_a_point_at_the_rate_that_was_completed_in_it() -> None:
    facts = search()
    (course,) = metric_series([row(facts, "CPUUtilization", lambda rate: 2 * rate)])
    found = points(course, Completions.of([facts]), ())
    assert [point.rate for point in found] == pytest.approx([0, *RATES], abs=1)
    assert [point.value for point in found] == [0, 40, 120, 200, 280]


def test_the_line_tells_the_rate_at_a_share_of_four_cores() -> None:
    facts = search()
    found = estimate("server.CPUUtilization<70%", measured(facts, row(facts, "CPUUtilization", lambda r: 4 + 1.38 * r)))
    assert found.estimate.rate == pytest.approx(200, rel=0.01)
    assert found.bound == 280
    assert found.estimate.interval is not None
    assert found.estimate.interval.low < 200 < found.estimate.interval.high


def test_a_page_is_read_stretch_by_stretch() -> None:
    facts = search()
    found = estimate("server.kv_cache_use<90%", measured(facts, sampled(facts, "kv_cache_use", lambda r: r / 200)))
    assert found.estimate.rate == pytest.approx(180, rel=0.02)


def test_what_grows_faster_than_the_rate_is_not_reported_beyond_what_was_measured() -> None:
    facts = search()
    reported = measured(facts, sampled(facts, "queue_length", lambda rate: rate**4 / 1e7, unit="Count"))
    kept, broken = estimate("server.queue_length<60", reported), estimate("server.queue_length<8", reported)
    assert kept.estimate.kept_everywhere
    assert kept.estimate.rate is None
    assert "not grow linearly" in kept.reason
    assert broken.estimate.interval is not None
    assert [broken.estimate.interval.low, broken.estimate.interval.high] == pytest.approx([60, 100], abs=1)


def test_a_metric_that_stays_as_it_is_keeps_its_limit_everywhere() -> None:
    facts = search()
    reported = measured(facts, row(facts, "MemoryUtilization", lambda _: 40.0))
    assert estimate("server.MemoryUtilization<80%", reported).estimate.kept_everywhere
    assert estimate("server.MemoryUtilization<30%", reported).estimate.rate == 0


def test_of_several_gpus_the_first_to_reach_it_counts() -> None:
    facts = search()
    two = [
        replace(sampled(facts, "gpu_use", lambda rate, each=each: rate / each), dimensions={"gpu": str(each)})  # type: ignore[misc]
        for each in (200, 400)
    ]
    assert estimate("server.gpu_use<90%", measured(facts, *two)).estimate.rate == pytest.approx(180, rel=0.02)


@pytest.mark.parametrize(
    ("text", "rows", "why"),
    [
        ("server.CPUUtilization<70%", [], "did not report CPUUtilization"),
        ("server.CPUUtilization<70%", ["unknown hardware"], "InstanceType"),
        ("server.CPUUtilization<70", ["known"], "write 70%"),
    ],
)
def test_what_cannot_be_known_says_why(text: str, rows: Sequence[str], why: str) -> None:
    facts = search()
    hardware = {"known": FOUR_CORES, "unknown hardware": None}
    found = [row(facts, "CPUUtilization", lambda rate: rate, hardware=hardware[each]) for each in rows]
    reported = estimate(text, measured(facts, *found))
    assert reported.estimate.rate is None
    assert not reported.estimate.kept_everywhere
    assert why in reported.reason


@pytest.mark.parametrize(
    ("text", "series_of"), [("server.wait_seconds.p99<400ms", "p99"), ("server.wait_seconds.p99<400ms", "Average")]
)
def test_a_bound_below_a_limit_shows_no_rate_at_which_it_is_met(text: str, series_of: str) -> None:
    facts = search()
    page = sampled(facts, "wait_seconds", lambda rate: rate / 1_000, "Seconds")
    start = facts.window.start_unix_ns / NS
    values = replace(page, statistics={"p99": 0.25, "Average": 0.6}, start=start, end=start + 40, series_of=series_of)
    rows = measured(facts, replace(values, bounds={"p99": "at_least"}))
    found = estimate(text, replace(rows, steady=(Span(start, start + 40),)))
    assert (found.estimate.rate, found.estimate.kept_everywhere) == (None, False)
    assert "only known to be ≥0.25 s" in found.reason


def test_points_that_bounds_left_out_of_a_course_meet_no_limit() -> None:
    facts = search()
    start = facts.window.start_unix_ns / NS
    page = sampled(facts, "wait_seconds", lambda rate: rate / 1_000, "Seconds")
    low = replace(page, statistics={"p99": 10.0}, series_of="p99", series=page.series[:20], start=start, end=start + 40)
    found = estimate("server.wait_seconds.p99<4s", measured(facts, replace(low, bounds={"p99": "at_least"})))
    assert (found.estimate.rate, found.estimate.kept_everywhere) == (None, False)


def test_times_that_count_for_nothing_are_left_out() -> None:
    facts = search()
    crowded = row(facts, "CPUUtilization", lambda rate: 2 * rate + 150 * (rate == 100))
    spoilt = spans(facts)[2]
    inside = Span(spoilt.start + 0.1, spoilt.end - 0.1)
    found = estimate("server.CPUUtilization<70%", measured(facts, crowded, without=(inside,)))
    assert found.estimate.rate == pytest.approx(140, rel=0.01)


def test_resources_are_reported_in_shares_and_the_next_one_is_named() -> None:
    facts = search()
    reported = measured(
        facts,
        row(facts, "CPUUtilization", lambda rate: 2 * rate),
        row(facts, "MemoryUtilization", lambda rate: 20 + rate / 10),
        row(facts, "LoadedModelCount", lambda _: 1.0),
    )
    found = resources(reported, [ServerLimit.parse("server.CPUUtilization<70%")], 100)
    assert found is not None
    assert found.next is not None
    assert found.next.metric == "CPUUtilization"
    assert found.next.rate == pytest.approx(140, rel=0.01)
    cpu, memory = found.all
    assert [cpu.at_low, cpu.limit] == pytest.approx([0.5, 0.7], rel=0.01)
    assert [memory.idle, memory.at_low, memory.limit] == pytest.approx([0.2, 0.3, 1.0], rel=0.01)
    assert resources(measured(facts), [], 100) is None


def test_stretches_have_shares_sums_and_ratios() -> None:
    facts = search()
    rows = [
        row(facts, "CPUUtilization", lambda rate: 2 * rate),
        *(
            replace(sampled(facts, "running_requests", lambda rate: rate / 10, "Count"), dimensions={"engine": engine})
            for engine in "ab"
        ),
        sampled(facts, "prefix_cache_hits", lambda rate: rate / 4, ""),
        sampled(facts, "prefix_cache_queries", lambda rate: rate, ""),
    ]
    values = stretch_values(metric_series(rows), dict(enumerate(spans(facts))))
    assert values[2]["CPUUtilization"] == 0.5
    assert values[2]["running_requests"] == pytest.approx(20)
    assert values[3]["prefix_cache_hit_rate"] == pytest.approx(0.25)


FOUND = Answer("found", 174.0, Interval(168, 180), "p99<100ms", estimates=(Estimate("p99<100ms", 174.0),))


def reported(rate: float | None, low: float = 0, high: float = 0, **more: object) -> ServerEstimate:
    limit = ServerLimit.parse("server.CPUUtilization<70%")
    interval = None if rate is None else Interval(low, high)
    return ServerEstimate(limit, Estimate(limit.expression, rate, interval, **more), reason="nobody knows")  # type: ignore[arg-type]


def test_the_lowest_limit_holds_and_is_named() -> None:
    lower, higher = (
        with_limits_of_server(FOUND, [reported(140, 138, 142)]),
        with_limits_of_server(FOUND, [reported(200, 190, 210)]),
    )
    assert (lower.rate, lower.interval, lower.limit) == (140, Interval(138, 142), "server.CPUUtilization<70%")
    assert (higher.rate, higher.interval, higher.limit) == (174, Interval(168, 180), "p99<100ms")
    assert [each.limit for each in higher.estimates] == ["p99<100ms", "server.CPUUtilization<70%"]
    near = with_limits_of_server(FOUND, [reported(176, 165, 190)])
    assert (near.rate, near.interval, near.limit) == (174, Interval(165, 180), "p99<100ms")


def test_a_limit_that_cannot_be_known_leaves_no_answer() -> None:
    found = with_limits_of_server(FOUND, [reported(None)])
    assert (found.outcome, found.rate, found.interval) == ("cannot_tell", None, None)
    assert found.reason == "server.CPUUtilization<70%: nobody knows"


def test_a_limit_that_is_kept_everywhere_changes_nothing_and_one_that_never_is_leaves_no_rate() -> None:
    assert with_limits_of_server(FOUND, [reported(None, kept_everywhere=True)]).rate == 174
    assert with_limits_of_server(FOUND, [reported(0, 0, 20)]).outcome == "not_kept"


@pytest.mark.parametrize(("rate", "outcome"), [(140, "found"), (600, "at_least")])
def test_below_the_highest_rate_that_was_tried_it_is_an_answer(rate: float, outcome: str) -> None:
    found = with_limits_of_server(Answer("at_least", at_least=500), [reported(rate, rate - 2, rate + 2)])
    assert found.outcome == outcome
    assert found.rate == (rate if outcome == "found" else None)
