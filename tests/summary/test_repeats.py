"""What the numbers mean where clients try again: requests and users apart, and each arrival in its stage."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.stages import spans_of, stages_of
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.slo import RequestLimit
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.summary.summary import Summary
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from tests.mentions import mentions
from tests.parts import in_memory
from tests.waves import MS, closed_plan, observe, open_plan

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts

RETRIES = Retries(0.1, 2)  # type: ignore[arg-type]


def of(index: int, due: int, *took_ms: int, last: str = "ok") -> list[RequestRecord]:
    """An arrival's rows: each attempt but the last failed, and the next was due 50 ms after."""
    rows, start = [], due
    for attempt, length in enumerate(took_ms):
        ended = start + length * MS
        outcome = last if attempt == len(took_ms) - 1 else "failed"
        error = "ClientTimeout" if outcome == "failed" else None
        rows.append(RequestRecord(index, 0, start, start, ended, outcome, error=error, attempt=attempt))
        start = ended + 50 * MS
    return rows


def wave() -> WaveFacts:
    """Ten arrivals in a second: the first needs two attempts, the second three, the third fails with all of them."""
    plan = replace(open_plan("10", "1"), retries=RETRIES, goodput=(RequestLimit.parse("response_time<200ms"),))
    rows = [*of(0, 0, 100, 20), *of(1, 100 * MS, 100, 100, 20), *of(2, 200 * MS, 100, 100, 100, last="failed")]
    return observe(plan, rows + [row for index in range(3, 10) for row in of(index, index * 100 * MS, 20)])


def test_requests_and_users_are_counted_apart() -> None:
    facts = wave()
    found, ledger = summarise(facts), facts.ledger
    assert (ledger.scheduled, ledger.sent, ledger.repeated, ledger.ok, ledger.failed) == (10, 15, 5, 9, 6)
    assert ledger.balanced
    assert found.success_rate == 9 / 15
    repeats = found.repeats
    assert repeats is not None
    assert (repeats.arrivals, repeats.requests, repeats.repeated, repeats.by_attempts) == (10, 15, 5, (7, 1, 2))
    assert (repeats.success_by_user, repeats.attempts) == (0.9, 1.5)
    assert found.latency is not None
    assert (found.latency.count, found.latency.maximum) == (9, 0.02)
    assert found.failed_latency is not None
    assert found.failed_latency.count == 6
    assert found.errors[0].count == 6
    assert found.lag is not None
    assert found.lag.maximum == 0


def test_a_response_time_is_the_users_from_arrival_to_the_last_answer() -> None:
    found = summarise(wave())
    assert found.response_time is not None
    assert found.repeats is not None
    assert found.response_time.values.tolist() == pytest.approx([0.02] * 7 + [0.17, 0.32])
    assert found.repeats.user_time is not None
    assert found.repeats.user_time.values.tolist() == found.response_time.values.tolist()


def test_goodput_is_of_users_and_the_completed_rate_counts_each_once() -> None:
    found = summarise(wave())
    assert found.goodput is not None
    assert found.goodput.share == 8 / 10
    assert found.rates.completed <= 9
    assert found.rates.sent == 15


def test_an_abandoned_attempt_counts_from_its_arrival() -> None:
    plan = replace(open_plan("10", "1"), retries=RETRIES)
    found = summarise(observe(plan, [*of(0, 0, 100, 500, last="abandoned"), *of(1, 100 * MS, 20)]))
    assert found.response_time is not None
    assert found.response_time.maximum == 0.65
    assert found.response_time.lower_bound_from == 0.65


def test_the_closed_loop_has_its_users_time_too() -> None:
    plan = replace(closed_plan(2, None, 2), retries=RETRIES)
    facts = observe(plan, [*of(0, 0, 100, 20), *of(1, 0, 20)])
    found = summarise(facts)
    assert facts.ledger.scheduled == 2
    assert facts.ledger.balanced
    assert found.response_time is None
    assert found.repeats is not None
    assert found.repeats.user_time is not None
    assert found.repeats.user_time.maximum == 0.17
    assert "User's time:      p50 20 ms, p99 170 ms" in to_text(facts, found, judge(facts, found))
    assert [finding.code for finding in judge(facts, found).findings if finding.severity == "invalid"] == []


def test_a_closed_loop_that_did_not_come_to_its_number_is_not_saved_by_repeats() -> None:
    plan = replace(closed_plan(2, None, 5), retries=RETRIES)
    facts = observe(plan, [*of(0, 0, 100, 20), *of(1, 0, 100, 20), *of(2, 200 * MS, 20)])
    assert "rate_missed" in {finding.code for finding in judge(facts, summarise(facts)).findings}


def test_repeats_do_not_make_up_for_arrivals_that_were_not_sent() -> None:
    plan = replace(open_plan("10", "1"), retries=RETRIES)
    rows = [row for index in range(6) for row in of(index, index * 100 * MS, 100, 20)]
    facts = observe(plan, rows, dropped=[4])
    codes = {finding.code for finding in judge(facts, summarise(facts)).findings}
    assert facts.ledger.balanced
    assert {"rate_missed", "dropped_arrivals"} <= codes


def staged(text: str, **more: Any) -> WavePlan:
    return WavePlan(OpenLoop(stages=tuple(map(Stage.parse, text.split(",")))), Bounds(), retries=RETRIES, **more)


def test_an_attempt_belongs_to_the_stage_of_its_arrival() -> None:
    plan = staged("10:1s,20:1s")
    rows = [row for index in range(10) for row in of(index, index * 100 * MS, *([100] * 2 if index > 7 else []), 20)]
    rows += [row for index in range(10, 30) for row in of(index, NS + (index - 10) * 50 * MS, 20)]
    facts = observe(plan, rows)
    first, second = stages_of(facts)
    assert (first.facts.ledger.sent, first.facts.ledger.repeated, first.facts.ledger.scheduled) == (14, 4, 10)
    assert (second.facts.ledger.sent, second.facts.ledger.repeated, second.facts.ledger.dropped) == (20, 0, 0)
    assert first.in_flight_end == 2
    stages = summarise(facts).stages
    assert [row.summary.repeats.attempts for row in stages if row.summary.repeats] == [1.4, 1.0]


def test_seconds_tell_arrivals_requests_and_repeats_apart() -> None:
    rows = list(csv.DictReader(io.StringIO(timeline(wave()))))
    assert [sum(int(row[name]) for row in rows) for name in ("scheduled", "sent", "repeated", "ok")] == [10, 15, 5, 9]
    assert max(float(row["response_time_p99_s"]) for row in rows if row["response_time_p99_s"]) == 0.32
    closed = observe(replace(closed_plan(2, None, 2), retries=RETRIES), [*of(0, 0, 100, 20), *of(1, 0, 20)])
    reported = list(csv.DictReader(io.StringIO(timeline(closed))))
    assert [int(reported[0][name]) for name in ("scheduled", "sent", "repeated")] == [2, 3, 1]


def test_the_report_has_a_block_for_repeats_only_where_clients_try_again() -> None:
    facts = wave()
    summary = summarise(facts)
    verdict = judge(facts, summary)
    text = to_text(facts, summary, verdict)
    assert "Arrivals:         10, 15 requests (1.50 per arrival), 5 repeats" in text
    assert "Success:          60% by request, 90% by user" in text
    assert "Goodput:          8/s, 80% of the arrivals (response_time<200ms: 80%)" in text
    assert "15/s sent with repeats, " in text
    assert "User's time:" not in text, "it is the response time"
    assert mentions(text.splitlines()[0], "9", "10 users", "15 requests", "6 failed", "ClientTimeout")
    reported = encoded(summary_of(facts, summary, verdict))["repeats"]
    assert (reported["requests"], reported["repeated"], reported["success_by_user"], reported["by_attempts"]) == (
        15,
        5,
        0.9,
        [7, 1, 2],
    )
    records = in_memory(facts.records)
    once = replace(facts, plan=replace(facts.plan, retries=Retries()), records=records.where(records.lasts))
    summary = summarise(once)
    assert "Arrivals:" not in to_text(once, summary, judge(once, summary))
    assert encoded(summary_of(once, summary, judge(once, summary)))["repeats"] is None


def test_a_stored_wave_tells_the_same(tmp_path: Path) -> None:
    facts = wave()
    made = Wave(facts.plan, facts.window, facts.records, facts.warmup, facts.ledgers)
    run_dir = RunDir.create(tmp_path)
    save_plan(run_dir, made.plan, {})
    writer.save(made, run_dir)
    read = Wave.load(run_dir.path)
    assert list(read.records) == list(made.records)
    assert read.to_json() == made.to_json()
    assert read.frame()["attempt"].tolist() == [0, 1, 0, 1, 2, 0, 1, 2, *[0] * 7]
    assert isinstance(read.summary, Summary)


def test_a_ledger_with_more_repeats_than_requests_is_refused(tmp_path: Path) -> None:
    facts = wave()
    made = Wave(facts.plan, facts.window, facts.records, facts.warmup, facts.ledgers)
    run_dir = RunDir.create(tmp_path)
    save_plan(run_dir, made.plan, {})
    writer.save(made, run_dir)
    text = run_dir.summary.read_text().replace('"repeated": 5', '"repeated": 16')
    run_dir.summary.write_text(text)
    with pytest.raises(BenchmarkError, match="16 of 15 requests were repeats"):
        Wave.load(run_dir.path)


def test_the_warmups_requests_are_counted_as_requests() -> None:
    plan = replace(open_plan("10", "1", warmup_s=1), retries=RETRIES)
    rows = [*of(-2, -200 * MS, 50, 20), *of(-1, -100 * MS, 20), *of(0, 0, 20)]
    warmup = summarise(observe(plan, rows)).warmup
    assert warmup is not None
    assert (warmup.ledger.scheduled, warmup.ledger.sent, warmup.ledger.repeated) == (2, 3, 1)
    assert warmup.ledger.balanced


@pytest.mark.parametrize("plan", [open_plan("10", "2"), closed_plan(2, "2")])
def test_a_stretch_of_time_has_the_arrivals_of_it_with_all_their_requests(plan: WavePlan) -> None:
    rows = [row for index in range(20) for row in of(index, index * 100 * MS, *([100] * 2 if index == 9 else []), 20)]
    facts = observe(replace(plan, retries=RETRIES), rows)
    first, second = (part.ledger for _, _, part in spans_of(facts, NS))
    assert (first.scheduled, first.sent, first.repeated, first.dropped) == (10, 12, 2, 0)
    assert (second.scheduled, second.sent, second.repeated, second.dropped) == (10, 10, 0, 0)
