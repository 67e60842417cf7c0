"""Values of the user's own, in numbers, limits and words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.report.text import client_text
from inference_benchmarker.report.user_metrics import user_metric_lines
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.limits_met import slo_met
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.waves import MS, observe, on_time, open_plan, staged


def reported(records: list[RequestRecord]) -> list[RequestRecord]:
    """Values 0, 1, 2 and so on; a second name of every fourth."""
    return [
        record._replace(metrics={"depth": float(number), **({"hit": 0.5} if number % 4 == 0 else {})})
        for number, record in enumerate(records)
    ]


def test_they_are_those_of_the_ok_requests_of_the_window() -> None:
    records = reported(on_time(open_plan("10", "10")))
    records[98] = records[98]._replace(outcome="failed", error="E")
    records[99] = records[99]._replace(outcome="abandoned")
    warm = RequestRecord(-1, 0, -NS, -NS, -NS + MS, metrics={"depth": 1e6, "of_warmup": 1.0})
    found = summarise(observe(open_plan("10", "10", warmup_s=1), [warm, *records])).metrics
    assert sorted(found) == ["depth", "hit"]
    depth = found["depth"]
    assert (depth.count, depth.mean, depth.maximum, depth.percentile(50)) == (98, sum(range(98)) / 98, 97, 48)
    assert found["hit"].count == 25


def test_without_any_nothing_is_reported() -> None:
    facts = observe(open_plan("10", "10"), on_time(open_plan("10", "10")))
    summary = summarise(facts)
    assert summary.metrics == {}
    assert list(user_metric_lines(summary.metrics)) == []


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("metric.depth.mean>=49.5", True),
        ("metric.depth.mean>49.5", False),
        ("metric.depth.p99<=98", True),
        ("metric.depth.max<99", False),
        ("metric.depth.min>-1e-3", True),
        ("metric.hit.median<.6", True),
        ("metric.nobody.mean<1", False),
    ],
)
def test_a_limit_is_held_against_them(text: str, met: bool) -> None:
    plan = open_plan("10", "10", slos=(Slo.parse(text),))
    facts = observe(plan, reported(on_time(plan)))
    summary = summarise(facts)
    assert slo_met(plan.slos[0], summary) is met
    found = [each for each in judge(facts, summary).findings if each.code == "slo_missed"]
    assert len(found) == (not met)


def test_the_finding_says_what_to_do() -> None:
    plan = open_plan("10", "10", slos=tuple(map(Slo.parse, ("metric.depth.mean>49.5001", "metric.nobody.p99<1"))))
    facts = observe(plan, reported(on_time(plan)))
    first, second = [each for each in judge(facts, summarise(facts)).findings if each.code == "slo_missed"]
    assert (first.measured, first.limit) == ("metric.depth.mean 49.5", "metric.depth.mean>49.5001")
    assert first.advice == "Each request's value is in requests.parquet, column metric.depth."
    assert second.measured == "metric.nobody.p99 not measured"
    assert second.advice == (
        'No successful request reported it: let invoke return or yield Response(metrics={"nobody": ...}).'
    )


def test_a_stage_has_its_own() -> None:
    plan = staged("10:5s,spike=20:5s", slos=(Slo.parse("spike:metric.depth.min>=50"), Slo.parse("metric.depth.max<50")))
    summary = summarise(observe(plan, reported(on_time(plan))))
    before, spike = (row.summary.metrics["depth"] for row in summary.stages)
    assert (before.minimum, before.maximum, spike.minimum, spike.maximum) == (0, 49, 50, 149)
    assert [slo_met(slo, summary.part(slo) or summary) for slo in plan.slos] == [True, False]


def test_the_report_has_a_row_for_each() -> None:
    plan = open_plan("10", "10")
    records = [
        each._replace(metrics={**(each.metrics or {}), "rows": 12_345_678.5}) for each in reported(on_time(plan))
    ]
    facts = observe(plan, records)
    summary = summarise(facts)
    assert list(user_metric_lines(summary.metrics)) == [
        "   Metric       mean         p50         p90         p95         p99  p99.9         max  requests",
        "   depth        49.5          49          89          94          98      -          99       100",
        "   hit           0.5         0.5         0.5         0.5         0.5      -         0.5        25",
        "   rows   12,345,678  12,345,678  12,345,678  12,345,678  12,345,678      -  12,345,678       100",
    ]
    assert "   depth " in client_text(facts, summary, judge(facts, summary))


def test_counted_requests_keep_those_of_the_slowest_alone() -> None:
    plan = open_plan("10", "10")
    (problem,) = problems_of_values(replace(plan, records="none", slos=(Slo.parse("metric.a.mean<1"),)))
    assert problem.text.startswith("--slo metric.a.mean<1: a metric of your own is computed from the record")
