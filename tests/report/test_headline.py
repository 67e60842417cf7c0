"""A report's first line: right in every case, and never a word on answers where there were none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.facts.client_use import Connections, WorkerUse
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.report.headline import headline, outcome
from inference_benchmarker.report.text import client_text, to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.queues import offered
from tests.situations import SITUATIONS, abandoning, failing, late, wave, without
from tests.waves import MS, closed_plan, observe, on_time, open_plan, streamed

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord
    from inference_benchmarker.verdict.finding import FindingCode

ALL = range(1000)


def first_line(facts: WaveFacts) -> str:
    summary = summarise(facts)
    return headline(summary, judge(facts, summary))


def by_turns(*errors: str) -> Any:
    def change(record: RequestRecord) -> RequestRecord:
        return record._replace(outcome="failed", error=errors[record.index % len(errors)])

    return change


def failing_and_abandoned(failed: int, abandoned: int) -> Any:
    def change(record: RequestRecord) -> RequestRecord:
        return abandoning(*range(failed, failed + abandoned))(failing(*range(failed))(record))

    return change


def slower_than_sent(slos: str) -> WaveFacts:
    facts = offered("first come first served", 2, kind="fixed", poisson=False, drain_s=60)
    return replace(facts, plan=replace(facts.plan, slos=tuple(map(Slo.parse, slos.split()))))


POOL = WorkerUse(connections=Connections(looked_at=100, waiting=50))

BELIEVED = "; the measurement is VALID"
CASES: dict[str, tuple[WaveFacts, str]] = {
    "faultless": (wave(), "VALID: 1,000 of 1,000 answered, p99 20 ms"),
    "closed loop": (
        observe(closed_plan(1, "10"), on_time(open_plan("10", "10"))),
        "VALID: 100 of 100 answered, p99 20 ms",
    ),
    "streams": (
        observe(open_plan("10", "10"), [streamed(n, 50, (10, 10)) for n in range(100)]),
        "VALID: 100 of 100 answered, TTFT p99 50 ms, p99 70 ms",
    ),
    "some failed": (wave(failing(1, 2)), "VALID: 1,000 of 1,000 answered, 2 failed (ValueError), p99 20 ms"),
    "some abandoned": (
        wave(failing_and_abandoned(2, 20)),
        "VALID: 980 of 1,000 answered, 20 abandoned, 2 failed (ValueError), p99 ≥",
    ),
    "all failed": (wave(failing(*ALL)), f"FAILED: all 1,000 requests failed, ValueError{BELIEVED}"),
    "all failed, late": (
        wave(lambda r: late(6 * MS)(r)._replace(outcome="failed", error="HttpError 500")),
        "INVALID, client-limited: all 1,000 requests failed, HttpError 500; schedule_lag p99 6 ms (limit 5 ms)",
    ),
    "all failed in several ways": (
        wave(by_turns("HttpError 500", "ReadTimeout", "HttpError 500")),
        f"FAILED: all 1,000 requests failed, most by HttpError 500 (667){BELIEVED}",
    ),
    "the only one failed": (
        wave(failing(0), plan={"bounds": open_plan("100", None, 1).bounds}),
        f"FAILED: the only request failed, ValueError{BELIEVED}",
    ),
    "all abandoned": (
        wave(abandoning(*ALL)),
        f"FAILED: every request was abandoned (1,000 in flight when the drain ended){BELIEVED}",
    ),
    "more abandoned than failed": (
        wave(failing_and_abandoned(300, 700)),
        f"FAILED: none of 1,000 requests succeeded: 700 abandoned, 300 failed (ValueError){BELIEVED}",
    ),
    "nothing sent": (observe(open_plan(), [], stopped_at=0), "INVALID: nothing was sent"),
    "interrupted": (wave(interrupted=True), "VALID, interrupted: 1,000 of 1,000 answered, p99 20 ms"),
    "nothing sent, interrupted": (
        observe(open_plan(), [], stopped_at=0, interrupted=True),
        "INVALID, interrupted: nothing was sent",
    ),
    "the only worker lost, and nothing reported": (
        observe(open_plan(), [], lost_workers=(0,)),
        "INVALID: nothing was reported; lost 1 of 1 workers, 100 arrivals with them",
    ),
    "a worker lost": (
        wave(without(*range(501, 1000, 2)), plan={"workers": 2}, lost_workers=(1,)),
        "INVALID: lost 1 of 2 workers, 250 arrivals with them; 75% of the planned arrivals "
        "were sent (limit 99%); 750 of 750 answered (1,000 were planned), p99 20 ms",
    ),
    "a limit missed": (
        wave(slos="p99<10ms"),
        f"LIMIT MISSED: p99<10ms with response time p99 20 ms; 1,000 of 1,000 answered{BELIEVED}",
    ),
    "a limit met": (
        wave(slos="p99<1s"),
        f"PASSED: p99<1s (response time p99 20 ms); 1,000 of 1,000 answered{BELIEVED}",
    ),
    "a limit met that is on no time": (
        wave(failing(1), slos="success>=99%"),
        "PASSED: success>=99% (success 99.9%); 1,000 of 1,000 answered, 1 failed (ValueError), p99 20 ms" + BELIEVED,
    ),
    "limits met": (
        wave(slos="p50<1s latency.p99<1s success>=0.5 rate>=0.5"),
        "PASSED: p50<1s (response time p50 20 ms); latency.p99<1s (latency.p99 20 ms); 2 more; "
        f"1,000 of 1,000 answered, p99 20 ms{BELIEVED}",
    ),
    "a limit met by too few": (
        wave(slos="p50<1s p99.99<1s"),
        "VALID: met p99.99<1s (response time p99.99 20 ms, of too few samples); met p50<1s (response time p50 20 ms); "
        "1,000 of 1,000 answered, p99 20 ms",
    ),
    "a limit met by few, which are enough for it": (
        observe(open_plan("10", None, 50, slos=(Slo.parse("p50<1s"),)), on_time(open_plan("10", None, 50))),
        f"PASSED: p50<1s (response time p50 20 ms); 50 of 50 answered, p99 20 ms{BELIEVED}",
    ),
    "one of two limits met": (
        wave(slos="p50<1s p99<10ms"),
        f"LIMIT MISSED: p99<10ms with response time p99 20 ms; 1,000 of 1,000 answered{BELIEVED}",
    ),
    "a limit met, interrupted": (
        wave(slos="p99<1s", interrupted=True),
        "VALID, interrupted: met p99<1s (response time p99 20 ms); 1,000 of 1,000 answered",
    ),
    "a limit met, and an arrival dropped": (
        wave(without(7), dropped=[1], slos="p99<1s"),
        "INVALID: dropped 1 arrival (0.1%); 999 of 999 answered (1,000 were planned), p99 20 ms",
    ),
    "a limit met through a full pool": (
        wave(workers=(POOL,), slos="p99<1s"),
        "VALID, client-limited: connection_pool 50% of the requests in flight waited for their pool's connections "
        "(limit 5%); met p99<1s (response time p99 20 ms); 1,000 of 1,000 answered",
    ),
    "a limit met by an endpoint that falls behind": (
        slower_than_sent("p99<60s success>=0.9"),
        "VALID, server-limited: 50/s of 100/s completed during the load (50%); met p99<60s (response time p99 ",
    ),
    "two limits missed": (
        wave(failing(*range(60)), slos="p50<1ms success>=0.99"),
        "LIMIT MISSED: p50<1ms with response time p50 20 ms; success>=0.99 with success 94%; "
        "success rate 94% (limit 95%); 1,000 of 1,000 answered, 60 failed",
    ),
    "late": (wave(late(NS)), "INVALID, client-limited: schedule_lag p99 1 s (limit 5 ms); 1,000 of 1,000 answered"),
    "dropped": (
        wave(without(7), dropped=[1]),
        "INVALID: dropped 1 arrival (0.1%); 999 of 999 answered (1,000 were planned), p99 20 ms",
    ),
    "a full pool": (
        wave(workers=(POOL,)),
        "VALID, client-limited: connection_pool 50% of the requests in flight waited for their pool's connections "
        "(limit 5%); 1,000 of 1,000 answered, p99 20 ms",
    ),
    "server-limited": (
        offered("last come first served", 2, kind="fixed", poisson=False, drain_s=1),
        "LIMIT MISSED, server-limited: ",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_happened(name: str) -> None:
    facts, expected = CASES[name]
    assert first_line(facts).startswith(expected)


def test_the_last_line_of_a_wave_that_passed_begins_as_the_first() -> None:
    facts = wave(slos="p99<1s")
    summary = summarise(facts)
    lines = to_text(facts, summary, judge(facts, summary)).splitlines()
    assert (lines[0].partition(":")[0], lines[-1]) == ("PASSED", f"PASSED{BELIEVED}")


@pytest.mark.parametrize("code", ["not_recovered", "cache_from_before", "hidden_statuses", "no_connection"])
def test_a_finding_that_leaves_a_met_limit_open_takes_its_word_and_is_told(code: FindingCode) -> None:
    facts = wave(slos="p99<1s")
    summary = summarise(facts)
    verdict = judge(facts, summary)
    doubted = replace(verdict, findings=(Finding(code, "warning", "something odd", "0", "Look."),))
    line = headline(summary, doubted)
    assert (outcome(summary, verdict), outcome(summary, doubted)) == ("PASSED", "VALID")
    assert line.startswith("VALID: met p99<1s (response time p99 20 ms); ")
    assert f"{code.replace('_', ' ')}: something odd" in line
    assert doubted.exit_code == 0


@pytest.mark.parametrize(
    ("ledger", "expected"),
    [
        (Ledger(scheduled=6, sent=6), "every request was in flight when its worker was lost"),
        (Ledger(scheduled=1, sent=1), "the request was in flight when its worker was lost"),
        (Ledger(scheduled=6, sent=6, abandoned=6), "every request was abandoned (6 in flight when the drain ended)"),
        (Ledger(scheduled=6, sent=6, abandoned=2), "none of 6 requests succeeded: 4 lost in flight, 2 abandoned"),
    ],
)
def test_requests_that_were_lost_are_not_reported_as_abandoned(ledger: Ledger, expected: str) -> None:
    facts = replace(observe(open_plan(), []), ledgers=(ledger,), lost_workers=(0,))
    assert expected in first_line(facts)


def test_a_server_that_is_the_limit_is_named_with_its_share() -> None:
    line = first_line(CASES["server-limited"][0])
    assert "/s of 100/s completed during the load (5" in line
    assert "latency grew" not in line
    assert " abandoned" in line


@pytest.mark.parametrize("rate", [999, 1_000, 12_345])
def test_a_rate_of_thousands_is_whole_in_it(rate: int) -> None:
    plan = open_plan(str(rate), "1")
    refused = [row._replace(outcome="failed", error="HttpError 503") if row.index % 2 else row for row in on_time(plan)]
    line = first_line(observe(plan, refused))
    assert re.match(
        rf"LIMIT MISSED, server-limited: [\d.,]+/s of {rate:,}/s completed during the load \(50.*%\); success rate 50",
        line,
    )


def test_sessions_that_a_server_turned_away_are_a_share_of_the_planned_sessions() -> None:
    """Nothing says how many requests a second were planned."""
    sessions = ("completed", "failed")
    plan = replace(open_plan("10", "10"), workers=1)
    rows = [
        row._replace(session=row.index, turn=1, ended=sessions[row.index % 2])
        for row in map(failing(*range(1, 100, 2)), on_time(plan))
    ]
    rows = [row._replace(error="HttpError 503") if row.error else row for row in rows]
    facts = observe(plan, rows, environment={"sessions": True})
    assert "server-limited: 5/s of 10/s completed during the load (50% of sessions); " in first_line(facts)


@pytest.mark.parametrize("name", SITUATIONS)
def test_in_every_situation_it_is_one_line_that_begins_as_the_verdict(name: str) -> None:
    facts, _, word, exit_code = SITUATIONS[name]
    line = first_line(facts)
    assert line.startswith((word, "FAILED", "LIMIT MISSED", "PASSED"))
    assert line.startswith("PASSED") <= (facts.plan.slos != () and word == "VALID" and exit_code == 0)
    assert word in line
    assert "\n" not in line
    assert ("interrupted" in line) == facts.interrupted
    assert ("answered" in line) == bool(facts.ledger.ok)


def test_an_error_of_many_lines_stays_in_it() -> None:
    assert "\n" not in first_line(wave(by_turns("Odd\nError \x1b[2J")))


def test_the_report_begins_with_it_before_any_metric_is_there() -> None:
    facts = replace(wave(), server_metrics=None)
    summary = summarise(facts)
    verdict = judge(facts, summary)
    for text in (client_text(facts, summary, verdict), to_text(facts, summary, verdict)):
        assert text.startswith("VALID: 1,000 of 1,000 answered, p99 20 ms\n\nRESULTS – InferenceBenchmarker\n")
