"""A wave that was ended early by itself: its finding, its first and its last line, its numbers until then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.plan.abort_on import AbortOn
from inference_benchmarker.report.headline import headline
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.mentions import mentions
from tests.waves import observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts

CONDITION = "success<50%@3s"


def ended(aborted: Aborted | None, *, failed_from: int = 30, late_ns: int = 0, **more: Any) -> WaveFacts:
    """A wave of 20/s for a minute that was stopped after five seconds; requests fail from one of them on.

    ``late_ns``: by how much each was sent after its due time.
    """
    plan = open_plan("20", "60", abort_on=(AbortOn.parse(CONDITION),))
    records = [
        record._replace(outcome="failed", error="ConnectionRefusedError") if record.index >= failed_from else record
        for record in on_time(plan)
        if record.due < 5 * NS
    ]
    records = [each._replace(sent=each.sent + late_ns, done=each.done + late_ns) for each in records]
    return observe(plan, records, stopped_at=5 * NS, aborted=aborted, **more)


@pytest.mark.parametrize(
    ("aborted", "measured", "limit"),
    [
        (Aborted(CONDITION, 0.1666, 60, 3), "after 5.0 s: success 16.66% of 60 requests over 3 s", CONDITION),
        (Aborted("p99>2s@10s", 2.512, 1, 10), "after 5.0 s: p99 2.51 s of 1 request over 10 s", "p99>2s@10s"),
        (Aborted("ttft.p90>1s@4s", 1.5, 9, 4), "after 5.0 s: ttft.p90 1.5 s of 9 requests over 4 s", "ttft.p90>1s@4s"),
        (Aborted("", None, 62, 4), "after 5.0 s: 62 requests without a connection, over 4 s", "3 s"),
    ],
)
def test_the_finding_says_what_was_seen_against_which_limit(aborted: Aborted, measured: str, limit: str) -> None:
    facts = ended(aborted)
    verdict = judge(facts, summarise(facts))
    (finding,) = (each for each in verdict.findings if each.code == "aborted")
    assert (finding.severity, finding.measured, finding.limit) == ("missed", measured, limit)
    assert (verdict.word, verdict.exit_code) == ("VALID", 1)
    assert decoded(encoded(aborted), Aborted) == aborted


def test_the_plan_counts_until_then_and_both_verdict_lines_say_it() -> None:
    facts = ended(Aborted(CONDITION, 0.1666, 60, 3))
    summary = summarise(facts)
    verdict = judge(facts, summary)
    assert (facts.ledger.scheduled, facts.ledger.sent) == (100, 100)
    assert not [each for each in verdict.findings if each.code == "rate_missed"]
    assert headline(summary, verdict).startswith(
        f"LIMIT MISSED: aborted after 5.0 s: success 16.66% of 60 requests over 3 s (limit {CONDITION}); "
    )
    assert "LIMIT MISSED (aborted, 1 threshold missed); the measurement is VALID" in to_text(facts, summary, verdict)


def test_a_wave_without_one_answer_says_first_that_it_was_aborted() -> None:
    facts = ended(Aborted("", None, 100, 4), failed_from=0)
    summary = summarise(facts)
    verdict = judge(facts, summary)
    assert mentions(
        headline(summary, verdict),
        "FAILED",
        "5.0 s",
        "100 requests",
        "4 s",
        "3 s",
        "100 requests",
        "ConnectionRefusedError",
    )
    assert [finding.code for finding in verdict.findings][:2] == ["aborted", "success_below_threshold"]
    assert "FAILED (aborted, 1 threshold missed); the measurement is VALID" in to_text(facts, summary, verdict)


@pytest.mark.parametrize(("failed_from", "outcome"), [(0, ("VALID", 1)), (30, ("INVALID", 3))])
def test_a_late_client_spoils_no_time_of_an_endpoint_that_was_never_there(
    failed_from: int, outcome: tuple[str, int]
) -> None:
    facts = ended(Aborted("", None, 62, 4), failed_from=failed_from, late_ns=90 * NS // 1000)
    verdict = judge(facts, summarise(facts))
    assert (verdict.word, verdict.exit_code) == outcome
    assert verdict.limited_by == (None if outcome[0] == "VALID" else "client")


def test_that_it_was_aborted_comes_before_why_it_is_invalid() -> None:
    facts = ended(Aborted(CONDITION, 0.1666, 60, 3), lost_workers=(0,))
    summary = summarise(facts)
    assert headline(summary, judge(facts, summary)).startswith("INVALID: aborted after 5.0 s: success")


def test_a_person_who_interrupts_the_drain_has_the_last_word() -> None:
    facts = ended(Aborted(CONDITION, 0.1, 60, 3), interrupted=True)
    assert judge(facts, summarise(facts)).exit_code == 130


@pytest.mark.parametrize(
    "data",
    [
        [],
        "dead",
        {},
        {"condition": "p99>2s@10s"},
        {"condition": 5, "measured": 0.5, "requests": 1, "over_s": 3},
        {"condition": "", "measured": "much", "requests": 1, "over_s": 3},
        {"condition": "", "measured": None, "requests": 1.5, "over_s": 3},
        {"condition": "", "measured": None, "requests": 1, "over_s": 1 << 70},
        {"condition": "rm -rf /", "measured": 0.5, "requests": 1, "over_s": 3},
    ],
)
def test_what_a_foreign_run_tells_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing|out of bounds|aborted|over_s"):
        decoded(data, Aborted)
