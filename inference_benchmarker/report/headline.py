"""A report's first line: the verdict, its cause, and what came of the requests. Pure."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from inference_benchmarker.summary.time_table import precision_mark
from inference_benchmarker.verdict.client.bottleneck import SIDES, limited_words
from inference_benchmarker.verdict.client.worker import LATE_ARRIVALS, P99_MOVED
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import duration_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.verdict.verdict import Verdict

MOST_CAUSES = 2
VALID, PASSED, FAILED, LIMIT_MISSED = "VALID", "PASSED", "FAILED", "LIMIT MISSED"
OUTCOMES = (PASSED, FAILED, LIMIT_MISSED)
"""The words with which a wave begins whose measurement is VALID, where they say more than that."""
_GRAVEST_FIRST = ("INVALID", FAILED, LIMIT_MISSED, "PENDING", VALID, PASSED)
_MISSED, _MET = "missed ", "met "
_SAID_BY = {LIMIT_MISSED: _MISSED, PASSED: _MET}
DOUBTED = ("not_recovered", "hidden_statuses", "no_connection")
"""The findings by which answers may be none, or the endpoint may still be slower than before."""
_LEAVE_OPEN = (*DOUBTED, "cache_from_before")
"""The findings by which a limit that was met may be missed by a longer wave, or one of whose answers more is known."""
# What was measured is the sentence, or becomes one by this word: its limit is no quantity, or nothing at all.
_SENTENCES = {
    "primary_lost": "",
    "disk_full": "",
    "loopback_down": "",
    "ledger_broken": "",
    "schedule_late": "",
    "worker_lost": "lost ",
    "dropped_arrivals": "dropped ",
}


def headline(summary: Summary, verdict: Verdict) -> str:
    """``VALID: 1,000 of 1,000 answered, p99 21 ms``; ``INVALID, client-limited: ...``; ``PENDING: ...``.

    A VALID wave of which nothing succeeded, or that missed a limit of the user's or met all of them, begins with that:
    ``FAILED: ...``, ``LIMIT MISSED: ...``, ``PASSED: ...``; that it may be believed comes last. Nothing that is said of
    an answer is said where there was none: then why there was none comes first. That the wave was aborted comes before
    all else: its numbers are of the time until then.
    """
    word = outcome(summary, verdict)
    notes = [word, *(["interrupted"] if verdict.interrupted else [])]
    if verdict.limited_by:
        notes.append(limited_words(verdict.limited_by))
    ledger = summary.ledger
    aborted, causes = list(_abort(verdict)), list(_causes(summary, verdict))
    if (said_by := _SAID_BY.get(word)) and not aborted:  # right behind the word, which says it
        first = len(list(takewhile(lambda cause: cause.startswith(said_by), causes)))
        causes[:first] = [cause.removeprefix(said_by) for cause in causes[:first]]
    if not ledger.sent:
        # What a lost worker sent and did not report, nobody knows.
        said = [*aborted, "nothing was reported" if ledger.lost else "nothing was sent", *causes]
    elif not ledger.ok:
        said = [*aborted, _nothing(summary), *causes]
    else:
        said = [*aborted, *causes, _answers(summary, causes)]
    believed = [] if word == verdict.word else [f"the measurement is {verdict.word}"]
    return f"{', '.join(notes)}: {'; '.join([*said, *believed])}"


def outcome(summary: Summary, verdict: Verdict) -> str:
    """The first word: the verdict, except where a VALID wave failed, missed a limit or met all that were given."""
    if verdict.word != VALID:
        return verdict.word
    if summary.ledger.sent and not summary.ledger.ok:
        return FAILED
    if any(finding.severity == "missed" for finding in verdict.findings):
        return LIMIT_MISSED
    return PASSED if verdict.met and not _is_open(verdict) else VALID


def gravest(words: Collection[str]) -> str:
    """The first word that speaks for several waves: that of the gravest end among them."""
    return next((word for word in _GRAVEST_FIRST if word in words), VALID)


def _is_open(verdict: Verdict) -> bool:
    """Tells whether it is not shown that a wave as planned meets the limits, though this one met them.

    It ended early; one side was the limit, so that a longer wave, or another client, may show other times; the samples
    are too few; or a finding says so.
    """
    found = any(finding.code in _LEAVE_OPEN for finding in verdict.findings)
    return found or verdict.interrupted or verdict.limited_by is not None or any(each.too_few for each in verdict.met)


def _abort(verdict: Verdict) -> Iterator[str]:
    """When and why the wave was aborted, if it was."""
    yield from (_with_limit(finding) for finding in verdict.findings if finding.code == "aborted")


def _nothing(summary: Summary) -> str:
    """Why not one request succeeded: whatever ended most of them first."""
    ledger = summary.ledger
    whole = "every request was" if ledger.sent > 1 else "the request was"
    if ledger.abandoned == ledger.sent:
        return f"{whole} abandoned ({ledger.abandoned:,} in flight when the drain ended)"
    if ledger.in_flight == ledger.sent:
        return f"{whole} in flight when its worker was lost"
    if ledger.failed == ledger.sent:
        who = f"all {ledger.sent:,} requests" if ledger.sent > 1 else "the only request"
        return f"{who} failed, {_errors(summary)}"
    return f"none of {ledger.sent:,} requests succeeded: {', '.join(_not_ok(summary))}"


def _errors(summary: Summary) -> str:
    """The error, or the most frequent of several with its count."""
    rows = summary.errors
    if not rows:
        return "for an unknown reason"
    if len(rows) == 1:
        return one_line(rows[0].key)
    return f"most by {one_line(rows[0].key)} ({rows[0].count:,})"


def _not_ok(summary: Summary) -> Iterator[str]:
    """The other requests and what became of them, the most frequent first."""
    ledger = summary.ledger
    counts = [
        (ledger.failed, f"{ledger.failed:,} failed ({_errors(summary)})"),
        (ledger.abandoned, f"{ledger.abandoned:,} abandoned"),
        (ledger.in_flight, f"{ledger.in_flight:,} lost in flight"),
    ]
    yield from (text for count, text in sorted(counts, key=lambda pair: -pair[0]) if count)


def _causes(summary: Summary, verdict: Verdict) -> Iterator[str]:
    """The causes: what made it INVALID, two at most; whom it blames; each limit that was missed; then what to doubt."""
    findings = [finding for finding in verdict.findings if finding.code not in ("nothing_sent", "aborted")]
    invalid = [finding for finding in findings if finding.severity == "invalid"]
    yield from map(_with_limit, invalid[:MOST_CAUSES])
    yield from _blamed([finding for finding in findings if finding not in invalid[:MOST_CAUSES]], verdict.limited_by)
    missed = [finding for finding in findings if finding.severity == "missed"]
    if not summary.ledger.ok:  # that no request succeeded says it
        missed = []
    yield from (
        f"{_MISSED}{finding.limit} with {finding.measured}" for finding in missed if finding.code == "slo_missed"
    )
    yield from (_with_limit(finding) for finding in missed if finding.code != "slo_missed")
    if outcome(summary, verdict) in (PASSED, VALID):
        yield from _met(verdict)
    yield from (
        finding.measured for finding in findings if finding.code == LATE_ARRIVALS and P99_MOVED in finding.measured
    )
    open_by = [finding for finding in findings if finding.code in (_LEAVE_OPEN if verdict.met else DOUBTED)]
    yield from (f"{finding.code.replace('_', ' ')}: {finding.measured}" for finding in open_by)
    yield from (f"{limit} waits for the server's metrics" for limit in verdict.pending)


def _met(verdict: Verdict) -> Iterator[str]:
    """The limits that were met, two at most, and of those first the ones that too few samples do not show."""
    found = sorted(verdict.met, key=lambda each: not each.too_few)
    yield from (f"{_MET}{each.text}" for each in found[:MOST_CAUSES])
    if more := len(found) - MOST_CAUSES:
        yield from [f"{_MET}{more} more"] if more > 0 else []


def _blamed(findings: list[Finding], side: str | None) -> Iterator[str]:
    """The findings that show who was the limit."""
    if side is None:
        return
    for finding in findings:
        if finding.code in SIDES[side]:
            # No rate ends at this comma: that of its thousands has no space behind it.
            yield _with_limit(finding) if side == "client" else re.split("[,;] ", finding.measured)[0]
            return


def _with_limit(finding: Finding) -> str:
    if finding.code in _SENTENCES:
        return f"{_SENTENCES[finding.code]}{finding.measured}"
    name = "" if finding.code in ("success_below_threshold", "rate_missed") else f"{finding.code} "
    return f"{name}{finding.measured.partition(';')[0]} (limit {finding.limit})"  # what else was seen stands below


def _answers(summary: Summary, causes: Sequence[str]) -> str:
    """The number that were answered, what became of the rest, and the p99 that a bare limit speaks of.

    No time is said twice: of a limit on it a cause says it.

    Of clients that try again: how many users were served, as each of them may have sent many requests.
    """
    ledger, repeats = summary.ledger, summary.repeats
    requests = "" if summary.sessions is None else "requests "
    answered = f"{ledger.completed:,} of {ledger.sent:,} {requests}answered"
    if summary.sessions is not None:
        sessions = summary.sessions
        answered = f"{sessions.completed:,} of {sessions.started:,} sessions completed, {answered}"
    elif repeats is not None:
        answered = f"{repeats.ok_users:,} of {repeats.arrivals:,} users served with {ledger.sent:,} requests"
    if ledger.dropped or ledger.lost:
        answered += f" ({ledger.scheduled:,} {'' if summary.sessions is None else 'sessions '}were planned)"
    times = (time for time in _times(summary) if not any(f" {time}" in cause for cause in causes))
    return ", ".join([answered, *_not_ok(summary), *times])


def _times(summary: Summary) -> Iterator[str]:
    for name, distribution in (("TTFT p99", summary.ttft), ("p99", summary.distribution("default"))):
        if distribution is not None:
            value = distribution.percentile(99)
            mark = "≥" if distribution.is_lower_bound(value) else ""
            yield f"{name} {mark}{duration_text(value)}{precision_mark(distribution)}"
