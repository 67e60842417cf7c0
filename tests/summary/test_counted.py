"""Numbers of requests that were counted beside those of the same requests' records."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.counts import PRECISION
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.verdict.missed_time import missed_time
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.counted import counted, requests
from tests.waves import MS, observe, on_time, open_plan, staged

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary

TIMES = ("latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl")
PLAN = replace(open_plan("10", "4"), workers=2, warmup_s=Decimal(1))


def both(plan: WavePlan, rows: list[RequestRecord], ends: tuple[int, ...] = ()) -> tuple[WaveFacts, WaveFacts]:
    """The same wave as its records tell it, and as it is counted, with a third of its slowest."""
    facts = observe(plan, rows)
    slowest = sorted((row for row in rows if row.index >= 0), key=lambda row: row.sent - row.done)
    kept = observe(plan, slowest[: len(slowest) // 3]).records
    open_loop = not isinstance(plan.load, ClosedLoop)
    counts = counted(rows, stage_ends=ends, open_loop=open_loop, draw=random.Random(1))
    return facts, replace(facts, records=kept, warmup=facts.warmup.between(0, 0), counts=counts)


@settings(max_examples=60)
@given(requests(), st.booleans())
def test_the_numbers_are_those_of_the_records(rows: list[RequestRecord], closed: bool) -> None:
    plan = replace(PLAN, load=ClosedLoop(4)) if closed else PLAN
    facts, counts = both(plan, rows)
    exact, found = summarise(facts), summarise(counts)
    _same(exact, found)
    assert [(row.key, row.count, row.first_s) for row in found.errors] == [
        (row.key, row.count, row.first_s) for row in exact.errors
    ]
    assert found.finish_reasons == exact.finish_reasons
    assert [(row.label, row.sent, row.ok, row.failed) for row in found.labels] == [
        (row.label, row.sent, row.ok, row.failed) for row in exact.labels
    ]
    for one, other in zip(exact.labels, found.labels, strict=True):
        _near(one.latency, other.latency)
        _near(one.response_time, other.response_time)
    assert (exact.warmup is None) == (found.warmup is None)
    if exact.warmup is not None and found.warmup is not None:
        _same(exact.warmup, found.warmup)
    if exact.tokens is None or found.tokens is None:
        assert exact.tokens is found.tokens
    else:
        for name in ("tokens_in", "tokens_out", "counted"):
            assert getattr(found.tokens, name) == getattr(exact.tokens, name), name


def _same(exact: Summary, found: Summary, server_rps: float = 1e-12) -> None:
    assert found.ledger == exact.ledger
    assert found.rates.target == exact.rates.target
    assert found.rates.server_rps == pytest.approx(exact.rates.server_rps, rel=server_rps)
    one, other = exact.rates.completed, found.rates.completed
    assert abs(one - other) <= found.rates.precision * max(one, other) + 1e-9
    for name in TIMES:
        _near(getattr(exact, name), getattr(found, name), name)
    assert found.tpot is None


def _near(exact: Distribution | None, found: Distribution | None, name: str = "") -> None:
    """Count and mean are the same, percentiles near, and what is a lower bound is marked."""
    assert (exact is None) == (found is None), name
    if exact is None or found is None:
        return
    assert found.count == exact.count, name
    assert found.precision == PRECISION
    assert found.mean == pytest.approx(exact.mean, rel=PRECISION, abs=2e-9)
    for percent in (0, 1, 50, 90, 99, 100):
        value = exact.percentile(percent)
        assert found.percentile(percent) == pytest.approx(value, rel=1.001 * PRECISION, abs=2e-9), name
        if exact.is_lower_bound(value):
            assert found.is_lower_bound(found.percentile(percent)), name


def test_means_of_measured_times_are_exact_and_so_is_the_longest() -> None:
    rows = [row._replace(done=row.done + row.index * 12_345) for row in on_time(PLAN)]
    exact, found = map(summarise, both(PLAN, rows))
    assert exact.latency is not None
    assert found.latency is not None
    assert found.latency.mean == pytest.approx(exact.latency.mean, rel=1e-12)
    assert found.latency.maximum == exact.latency.maximum


def test_the_longest_stands_for_none_of_those_beside_it() -> None:
    """Most latencies lie at the lower end of the bucket at whose upper end the longest is."""
    rows = [row._replace(done=row.sent + (1 << 24) + (row.index == 7) * ((1 << 18) - 9)) for row in on_time(PLAN)]
    exact, found = map(summarise, both(PLAN, rows))
    _same(exact, found)
    assert exact.latency is not None
    assert found.latency is not None
    assert found.latency.maximum == exact.latency.maximum


def test_nobody_waited_shorter_than_the_answer_took() -> None:
    rows = [row._replace(sent=row.sent + 10, done=row.sent + (1 << 24) + (1 << 18) - 9) for row in on_time(PLAN)]
    found = summarise(both(PLAN, rows)[1])
    assert found.latency is not None
    assert found.response_time is not None
    assert found.response_time.maximum == pytest.approx(found.latency.maximum + 1e-8, rel=1e-12)


@pytest.mark.parametrize("latency_ms", [1, 15, 40, 700])
def test_the_completed_rate_is_known_to_20_ms(latency_ms: int) -> None:
    plan = replace(open_plan("100", "10"), workers=2)
    exact, found = map(summarise, both(plan, on_time(plan, latency_ms * MS)))
    assert exact.rates.completed == 100
    assert found.rates.completed == pytest.approx(100, rel=found.rates.precision)
    assert exact.rates.precision == 0 < found.rates.precision < 0.02
    assert found.rates.sent == exact.rates.sent


@pytest.mark.parametrize("median_ms", range(2000, 2600, 37))
def test_the_length_of_a_span_that_was_cut_is_known_to_the_median_latency_too(median_ms: int) -> None:
    rows = [
        RequestRecord(place, place % 2, due, due, due + median_ms * MS, "ok", "", None)
        for place, due in enumerate(range(0, 800 * MS, 100 * MS))
    ]
    rows.append(RequestRecord(8, 0, 800 * MS, 800 * MS, 5_419 * MS, "abandoned", "", None))
    exact, found = map(summarise, both(PLAN, rows))
    assert found.rates.precision < 0.02
    _same(exact, found)


def test_what_is_sent_after_the_end_of_the_plan_is_not_in_the_sent_rate() -> None:
    plan = open_plan("10", "4")
    rows = [row._replace(sent=row.sent + 500 * MS, done=row.done + 500 * MS) for row in on_time(plan)]
    exact, found = map(summarise, both(plan, rows))
    assert found.rates.sent == exact.rates.sent < 10


def test_the_timeline_is_that_of_the_records() -> None:
    rows = [row._replace(done=row.done + row.index * MS, label="a") for row in on_time(PLAN, 30 * MS)]
    rows[-1] = rows[-1]._replace(outcome="abandoned", done=6 * NS)
    rows[-2] = rows[-2]._replace(outcome="failed", error="E")
    exact, found = ([line.split(",") for line in timeline(facts).splitlines()] for facts in both(PLAN, rows))
    assert [row[:6] for row in found] == [row[:6] for row in exact]
    for one, other in zip(exact[1:], found[1:], strict=True):
        assert float(other[6]) == pytest.approx(float(one[6]), abs=0.2)
        for place in (7, 8, 9, 11):  # a lag belongs to the second in which the request was over
            assert bool(one[place]) == bool(other[place])
            assert not one[place] or float(other[place]) == pytest.approx(float(one[place]), rel=PRECISION, abs=1e-6)
    assert [row[12:] for row in found] == [row[12:] for row in exact]


def test_stages_are_distinguished() -> None:
    plan = replace(staged("low=20:2s,high=50:2s", slos=(Slo.parse("p99<1s"),)), seed=1)
    rows = [row._replace(done=row.done + (row.due > 2 * NS) * 200 * MS) for row in on_time(plan, 30 * MS)]
    exact, found = map(summarise, both(plan, rows, (2 * NS, 4 * NS)))
    for one, other in zip(exact.stages, found.stages, strict=True):
        _same(one.summary, other.summary, server_rps=0.02)  # the last answer of a stage is known to 20 ms
        assert (one.name, one.in_flight_end) == (other.name, other.in_flight_end)
        assert other.summary.rates.completed == pytest.approx(one.summary.rates.completed, rel=0.02)


@pytest.mark.parametrize("slower", [0, 1])
def test_an_endpoint_that_falls_behind_is_found_as_by_the_records(slower: int) -> None:
    """A queue of one that answers 80 a second of 100 that arrive; and one that keeps up."""
    plan = replace(open_plan("100", "20"), workers=2)
    rows, free = [], 0
    for row in sorted(on_time(plan)):
        free = max(free, row.due) + (12_500_000 if slower else 5_000_000)
        rows.append(row._replace(done=free))
    codes = [{finding.code for finding in judge(facts, summarise(facts)).findings} for facts in both(plan, rows)]
    assert codes[0] == codes[1]
    assert ("server_limited" in codes[0]) == bool(slower)


def test_a_standstill_is_found_as_by_the_records() -> None:
    plan = replace(open_plan("100", "20"), workers=2)
    rows = [
        row._replace(done=max(row.done, 12 * NS + row.index) if 8 * NS < row.due < 12 * NS else row.done)
        for row in on_time(plan, 5 * MS)
    ]
    found = [judge(facts, summarise(facts)).findings for facts in both(plan, rows)]
    assert [{each.code for each in findings} for findings in found] == [{"endpoint_stalled"}] * 2


def test_without_records_it_is_said_what_they_would_tell() -> None:
    facts, counts = both(PLAN, on_time(PLAN))
    lines = [to_text(each, summarise(each), judge(each, summarise(each))) for each in (facts, counts)]
    assert "Records:" not in lines[0]
    assert "kept for the slowest 13 requests only; not measured: whether the first requests were slower" in lines[1]
    assert "percentiles ±1%" in lines[1]


def test_requests_that_were_not_counted_once_are_found() -> None:
    """As a worker leaves them that has no memory while it counts."""
    facts, whole = both(PLAN, on_time(PLAN))
    twice = replace(facts, records=whole.records, counts=counted([*facts.records, *facts.records]))
    for each, found in ((whole, []), (twice, ["ledger_broken"])):
        verdict = judge(each, summarise(each))
        assert [finding.code for finding in verdict.findings if finding.severity == "invalid"] == found
        assert verdict.valid is (found == [])


def test_the_report_of_counted_requests_fits_80_columns() -> None:
    plan = replace(staged("low=20:2s,high=50:2s", slos=(Slo.parse("p99<1s"),)), seed=1)
    rows = [row._replace(sent=row.sent + 1234, done=row.done + row.index * 12_345) for row in on_time(plan, 21 * MS)]
    _, counts = both(plan, rows, (2 * NS, 4 * NS))
    lines = to_text(counts, summarise(counts), judge(counts, summarise(counts))).splitlines()
    tables = [
        line for line in lines if line.startswith(("   percentiles ±1%  ", "   Stage (±1%)  ", "   Response time  "))
    ]
    assert len(tables) == 3
    assert max(map(len, tables)) <= 80


def test_a_limit_within_the_precision_is_missed_and_says_so() -> None:
    plan = replace(open_plan("100", "4"), slos=(Slo.parse("p99<20.1ms"), Slo.parse("p99<21ms")))
    facts, counts = both(plan, on_time(plan, 20 * MS))
    assert judge(facts, summarise(facts)).findings == ()
    (finding,) = judge(counts, summarise(counts)).findings
    assert finding.code == "slo_missed"
    assert finding.limit == "p99<20.1ms"
    assert "within ±1% of the limit, too close to decide" in finding.measured
    assert "--records all" in finding.advice


def test_the_time_in_which_limits_were_missed_is_that_in_which_requests_were_over() -> None:
    plan = replace(open_plan("50", "10"), slos=(Slo.parse("p99<100ms"),), workers=2)
    rows = [row._replace(done=row.due + (300 if 4 <= row.due / NS < 6 else 20) * MS) for row in on_time(plan)]
    facts, counts = both(plan, rows)
    assert [missed_time(each).spans for each in (facts, counts)] == [((4.0, 6.0),), ((4.0, 7.0),)]


@pytest.mark.parametrize("after_ms", [20, 900])
def test_recovery_is_reported_by_when_requests_were_over(after_ms: int) -> None:
    plan = replace(staged("low=20:10s,spike=100:10s,after=20:20s"), workers=2)
    rows = [
        row._replace(done=row.due + (20 if row.due < 12 * NS else 900 if row.due < 20 * NS else after_ms) * MS)
        for row in on_time(plan)
    ]
    exact, found = map(summarise, both(plan, rows, (10 * NS, 20 * NS, 40 * NS)))
    seconds = [row.recovery.recovery_s if row.recovery else "none" for row in exact.stages]
    again = [row.recovery.recovery_s if row.recovery else "none" for row in found.stages]
    assert seconds == ["none", 0.0 if after_ms == 20 else None, "none"]
    assert again == ["none", 1.0 if after_ms == 20 else None, "none"]
