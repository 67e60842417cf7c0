"""Percentiles of samples that were counted: marked in the report, and no limit is met by what too close to decide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.report.headline import headline
from inference_benchmarker.report.summary_json import times
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.summary.statistics.streaming_histogram import PRECISION, StreamingHistogram
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.limits_met import slo_met
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.wording import precision_text
from tests.waves import observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary

LIVE = 1 / 128  # of the live feed's histograms


@pytest.mark.parametrize(
    ("precision", "text"),
    [
        (PRECISION, "±0.01%"),
        (2 * PRECISION, "±0.02%"),
        (0.0003, "±0.05%"),
        (LIVE, "±1%"),
        (0.01, "±1%"),
        (0.06, "±10%"),
    ],
)
def test_a_precision_is_reported_as_a_round_share_and_never_too_small(precision: float, text: str) -> None:
    assert precision_text(precision) == text


def _wave(*slos: str, precision: float = PRECISION) -> tuple[WaveFacts, Summary]:
    """A thousand response times around 20 ms, counted."""
    facts = observe(open_plan(slos=tuple(map(Slo.parse, slos))), on_time(open_plan()))
    tally = StreamingHistogram(most_held=0)
    tally.add([0.019, *[0.02] * 998, 0.021])
    counted = tally.distribution()
    assert counted is not None
    counted = replace(counted, precision=precision)
    return facts, replace(summarise(facts), latency=counted, response_time=counted)


@pytest.mark.parametrize(
    ("slo", "precision", "met"),
    [
        ("p99<20ms", PRECISION, False),
        ("p99<=20.0005ms", PRECISION, False),  # 0.003%: nearer than can be decided
        ("p99<=20.003ms", PRECISION, True),
        ("p99<20.1ms", LIVE, False),
        ("p99<20.2ms", LIVE, True),
        ("median>=19.9ms", LIVE, False),
        ("median>=19.8ms", LIVE, True),
        ("latency.max<=21ms", PRECISION, True),  # least, most and mean are exact
        ("latency.max<=21ms", LIVE, False),  # of a bucket that was counted alone they are not
        ("mean<20.001ms", LIVE, True),
        ("success>=1", LIVE, True),
    ],
)
def test_a_limit_that_is_too_near_to_tell_counts_as_missed(slo: str, precision: float, met: bool) -> None:
    facts, summary = _wave(slo, precision=precision)
    (limit,) = facts.plan.slos
    assert slo_met(limit, summary) is met


def test_the_finding_says_so() -> None:
    facts, summary = _wave("p99<=20.0005ms", "p99<=19ms")
    near, far = (each.measured for each in judge(facts, summary).findings if each.code == "slo_missed")
    assert near.endswith("within ±0.01% of the limit, too close to decide")
    assert "within" not in far
    assert "too close to decide" in headline(summary, judge(facts, summary))


def test_an_exact_value_at_its_limit_is_met() -> None:
    plan = open_plan(slos=(Slo.parse("p99<=20ms"),))
    facts = observe(plan, on_time(plan))
    assert not [each for each in judge(facts, summarise(facts)).findings if each.code == "slo_missed"]


def test_the_report_marks_each_table_of_counted_percentiles_once() -> None:
    facts, summary = _wave()
    text = to_text(facts, summary, judge(facts, summary))
    assert text.count("percentiles ±0.01%") == 1
    exact = summarise(facts)
    assert "±" not in to_text(facts, exact, judge(facts, exact))
    assert repr(summary).endswith("(±0.01%)>")
    assert isinstance(summary.latency, Distribution)
    assert encoded(times(summary.latency))["precision"] == PRECISION


@pytest.mark.parametrize(("slo", "met"), [("rate>=0.99", True), ("rate>=0.997", False)])
def test_a_limit_on_the_completed_rate_is_met_by_what_can_be_known(slo: str, met: bool) -> None:
    limit = Slo.parse(slo)
    plan = open_plan(slos=(limit,))
    summary = summarise(observe(plan, on_time(plan)))
    counted = replace(summary, rates=replace(summary.rates, precision=0.005))
    assert slo_met(limit, counted) is met
    assert slo_met(limit, summary)
