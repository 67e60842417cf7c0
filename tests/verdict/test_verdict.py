"""The verdict: which situations make which findings, and what follows from them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.record import Ledger, RequestRecord
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.client.worker import lag_limit_s
from inference_benchmarker.verdict.finding import Finding, FindingCode
from inference_benchmarker.verdict.verdict import Verdict, judge
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, percent_text
from tests.situations import SITUATIONS, abandoning, failing, late, verdict_of, wave, without
from tests.waves import MS, closed_plan, observe, on_time, open_plan, streamed

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.plan import WavePlan


@pytest.mark.parametrize("name", SITUATIONS)
def test_findings_verdict_and_exit_code(name: str) -> None:
    facts, codes, word, exit_code = SITUATIONS[name]
    verdict = verdict_of(facts)
    assert [finding.code for finding in verdict.findings] == codes
    assert (verdict.word, verdict.exit_code) == (word, exit_code)
    for finding in verdict.findings:
        assert all((finding.measured, finding.limit, finding.advice))
        assert finding.measured != finding.limit


@pytest.mark.parametrize(
    ("codes", "side"),
    [
        ((), None),
        (("hidden_retries", "slo_missed", "too_few_samples"), None),
        (("connection_pool",), "client"),
        (("heartbeats_missed", "hidden_retries"), "client"),
        (("server_limited",), "server"),
        (("connection_pool", "worker_cpu", "server_limited"), "server"),
    ],
)
def test_the_endpoint_where_it_is_named_is_the_limit(codes: tuple[FindingCode, ...], side: str | None) -> None:
    verdict = Verdict(tuple(Finding(code, "warning", "1", "0", "a") for code in codes))
    assert verdict.limited_by == side


def test_exit_codes_go_by_precedence() -> None:
    for invalid, missed, warning, interrupted in itertools.product((False, True), repeat=4):
        severities = [("invalid", invalid), ("missed", missed), ("warning", warning)]
        findings = tuple(Finding("worker_lost", severity, "1", "0", "a") for severity, there in severities if there)  # type: ignore[arg-type]
        expected = 130 if interrupted else 3 if invalid else 1 if missed else 0
        assert Verdict(findings, interrupted).exit_code == expected


class TestLagLimit:
    @staticmethod
    def limit(facts: WaveFacts) -> float:
        return lag_limit_s(summarise(facts))

    def test_it_is_a_tenth_of_the_median_latency_and_at_least_5_ms(self) -> None:
        assert self.limit(wave()) == 0.005
        assert self.limit(wave(late(0, 50 * MS))) == pytest.approx(0.005)
        assert self.limit(wave(late(0, 300 * MS))) == pytest.approx(0.03)

    def test_for_streams_it_is_a_tenth_of_the_median_ttft(self) -> None:
        plan = open_plan("10", "1")
        assert self.limit(observe(plan, [streamed(n, 100, (3000,)) for n in range(10)])) == pytest.approx(0.01)

    def test_where_nothing_succeeded_it_is_5_ms(self) -> None:
        assert self.limit(wave(failing(*range(1000)))) == 0.005


def test_the_closed_loop_has_no_schedule_to_be_late_for() -> None:
    plan = closed_plan(1, "1")
    records = [r._replace(sent=r.due + NS, done=r.due + 2 * NS) for r in on_time(open_plan("200", "1"))]
    assert [finding.code for finding in verdict_of(observe(plan, records)).findings] == []


def test_a_slow_build_is_named_as_the_cause_of_lag() -> None:
    facts = wave(lambda r: late(NS)(r)._replace(build_ns=100 * MS))
    lag, building = verdict_of(facts).findings
    assert (lag.code, building.code) == ("schedule_lag", "payload_building")
    assert "pre_computed" in lag.advice


def test_the_gravest_finding_comes_first() -> None:
    facts = wave(abandoning(3), slos="p50<1ms", primary_lost=True)
    assert [f.severity for f in verdict_of(facts).findings] == ["invalid", "missed", "warning"]


def test_a_finding_gives_number_limit_and_metric() -> None:
    findings = verdict_of(wave(failing(*range(200)), slos="latency.p95<=19.999ms ttft.p90<1s success>=0.9")).findings
    assert [(f.measured, f.limit) for f in findings] == [
        ("success rate 80%", "95%"),
        ("latency.p95 20 ms", "latency.p95<=19.999ms"),
        ("ttft.p90 not measured", "ttft.p90<1s"),
        ("success 80%", "success>=0.9"),
    ]


@pytest.mark.parametrize(
    ("plan", "measured"),
    [
        (open_plan("10", "10", slos=(Slo.parse("p99<1ms"),)), "response time p99 20 ms"),
        (closed_plan(2, None, 10, slos=(Slo.parse("p99<1ms"),)), "latency p99 20 ms"),
        (closed_plan(2, None, 10, slos=(Slo.parse("mean<1ms"),)), "latency mean 20 ms"),
    ],
    ids=["open", "closed", "mean"],
)
def test_what_a_bare_percentile_is_of_is_said(plan: WavePlan, measured: str) -> None:
    records = [RequestRecord(index, 0, index * MS, index * MS, (index + 20) * MS) for index in range(10)]
    found = verdict_of(observe(plan, records)).findings
    assert [finding.measured for finding in found if finding.code == "slo_missed"] == [measured]


@pytest.mark.parametrize(
    ("share", "others", "text"),
    [
        (1.0, (), "100%"),
        (0.0, (), "0%"),
        (0.95, (), "95%"),
        (0.99996, (), "99.996%"),
        (0.999999999, (), "99.9999999%"),
        (0.9499999, (0.95,), "94.99999%"),
        (0.95, (0.95,), "95%"),
        (1 / 3, (), "33.33%"),
    ],
)
def test_a_share_never_looks_like_what_it_is_not(share: float, others: tuple[float, ...], text: str) -> None:
    assert percent_text(share, *others) == text


@pytest.mark.parametrize(
    ("seconds", "beside", "text"),
    [
        (0.0, None, "0 ms"),
        (0.000001, None, "0.001 ms"),
        (0.0000123, None, "0.0123 ms"),
        (0.0201, None, "20.1 ms"),
        (0.0999, None, "99.9 ms"),
        (0.09996, None, "100 ms"),
        (0.2, None, "200 ms"),
        (0.9994, None, "999 ms"),
        (0.9996, None, "1 s"),
        (1.9234, None, "1.92 s"),
        (60.0, None, "60 s"),
        (999.7, None, "1000 s"),
        (123456.0, None, "123456 s"),
        (0.005001, 0.005, "5.001 ms"),
        (0.2003, 0.2, "200.3 ms"),
        (0.005, 0.005, "5 ms"),
    ],
)
def test_a_time_has_three_digits_and_differs_from_its_limit(seconds: float, beside: float | None, text: str) -> None:
    assert duration_text(seconds, beside) == text


def test_a_dropped_share_is_of_the_scheduled() -> None:
    (dropped, _) = verdict_of(wave(without(*range(20)), dropped=[20])).findings
    assert dropped.measured == "20 arrivals (2%)"


def test_a_stop_before_the_first_arrival_divides_by_nothing() -> None:
    facts = replace(observe(open_plan(seconds="5", warmup_s=Decimal(1)), [], stopped_at=0), ledgers=(Ledger(),))
    assert verdict_of(facts).exit_code == 3


def test_an_age_that_is_a_lower_bound_does_not_keep_an_upper_limit() -> None:
    plan = open_plan("10", "10", slos=(Slo.parse("latency.max<10s"), Slo.parse("latency.p50<10s")))
    records = on_time(plan)
    records[-1] = records[-1]._replace(outcome="abandoned", done=records[-1].sent + 1000 * MS)
    facts = observe(plan, records)
    missed = [finding for finding in judge(facts, summarise(facts)).findings if finding.code == "slo_missed"]
    assert [(finding.measured, finding.limit) for finding in missed] == [("latency.max ≥1 s", "latency.max<10s")]


def test_a_closed_loop_that_did_not_send_its_number_is_invalid() -> None:
    plan = closed_plan(2, None, 10)
    records = [RequestRecord(index, 0, 0, 0, 5 * MS) for index in range(4)]
    facts = observe(plan, records)
    assert [finding.code for finding in judge(facts, summarise(facts)).findings if finding.severity == "invalid"] == [
        "rate_missed"
    ]


@pytest.mark.parametrize(("raised", "severity", "code"), [(2, "warning", 0), (3, "invalid", 3)])
def test_more_than_one_session_in_a_hundred_that_raises_leaves_the_load_short(
    raised: int, severity: str, code: int
) -> None:
    plan = open_plan("20", "10")
    ends = ["raised"] * raised + ["completed"] * (200 - raised)
    lines = [
        record._replace(session=record.index, turn=1, ended=ended)
        for record, ended in zip(on_time(plan), ends, strict=True)
    ]
    facts = observe(plan, lines, environment={"sessions": True})
    verdict = judge(facts, summarise(facts))
    (finding,) = (each for each in verdict.findings if each.code == "sessions_raised")
    assert (finding.severity, verdict.exit_code) == (severity, code)
