"""The findings on a wave itself: the load that it offered, and how much was measured. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.records.response import MOST_TOKENS
from inference_benchmarker.summary.request_times import impossible_usage
from inference_benchmarker.summary.statistics.distribution import least_count
from inference_benchmarker.verdict.advice import less_load, longer_load
from inference_benchmarker.verdict.client.evidence import FAILED_HERE_SHARE
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import percent_text, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.sessions import Sessions
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary

LEAST_SENT_SHARE = 0.99
LEAST_ROUNDS = 10  # durations of a session: those that began together are then a tenth of the wave


def load_findings(facts: WaveFacts) -> Iterator[Finding]:
    """The load that was planned and not offered."""
    yield from _dropped_findings(facts)
    yield from _late_findings(facts)
    yield from _rate_findings(facts)


def _dropped_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Arrivals and turns for which there was no place."""
    ledger = facts.ledger
    if ledger.dropped:
        share = ledger.dropped / (ledger.scheduled or ledger.dropped)  # a broken ledger may have none planned
        yield Finding(
            "dropped_arrivals",
            "invalid",
            f"{pluralize(ledger.dropped, 'arrival', 'arrivals')} ({percent_text(share)})",
            "0",
            "The maximum number of requests was in flight: answers came more slowly than arrivals. Use "
            f"{less_load(facts.plan.load)}, or raise --max-in-flight (and ulimit -n).",
        )
    if ledger.dropped_turns:
        yield Finding(
            "dropped_arrivals",
            "invalid",
            f"{pluralize(ledger.dropped_turns, 'later turn', 'later turns')} of sessions, which ended with them",
            "0",
            "The maximum number of requests was in flight: answers came more slowly than turns. "
            f"Use {less_load(facts.plan.load)}, or raise --max-in-flight (and ulimit -n).",
        )


def _late_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Changes of the load that workers heard of too late."""
    if changes := facts.ledger.late_changes:
        late = [number for number, each in enumerate(facts.ledgers) if each.late_changes]
        yield Finding(
            "schedule_late",
            "invalid",
            f"{_workers(late)} received {pluralize(changes, 'change', 'changes')} of the load too late",
            "each is received before it takes effect",
            "What was sent around a change (the start, another rate, the planned end) differs from the plan, because "
            "the worker or the link to its host was blocked. Let invoke block less, use more --workers, or run fewer "
            "other programs on this machine.",
        )


def _rate_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Less was sent than was planned."""
    ledger = facts.ledger
    share = ledger.arrivals / ledger.scheduled if ledger.scheduled else 1.0
    if facts.open_loop and share < LEAST_SENT_SHARE:
        yield Finding(
            "rate_missed",
            "invalid",
            f"{percent_text(share, LEAST_SENT_SHARE)} of the planned arrivals were sent",
            f"{percent_text(LEAST_SENT_SHARE)}",
            "The load that was sent differs from the plan: the other findings name the cause.",
        )
    number = facts.plan.bounds.num_requests
    unbounded = facts.plan.bounds.duration_ns is None and facts.window.stopped_at_ns is None
    if not facts.open_loop and number is not None and unbounded and ledger.arrivals < number:
        yield Finding(
            "rate_missed",
            "invalid",
            f"{pluralize(ledger.arrivals, f'{_unit(facts)} was', f'{_unit(facts)}s were')} sent",
            f"{number:,}",
            "Requests were not answered, so the next ones were never sent: set a --request-timeout.",
        )


def _unit(facts: WaveFacts) -> str:
    return "session" if facts.has_sessions else "request"


def _workers(numbers: list[int]) -> str:
    """The first few of them by number."""
    text = ", ".join(map(str, numbers[:5])) + (", ..." if numbers[5:] else "")
    return f"worker {text}" if len(numbers) == 1 else f"workers {text}"


def sample_findings(facts: WaveFacts, summary: Summary) -> Iterator[Finding]:
    """Requests without an answer, and percentiles of too few."""
    ledger = facts.ledger
    if ledger.abandoned:
        yield Finding(
            "unfinished_requests",
            "warning",
            f"{pluralize(ledger.abandoned, 'request', 'requests')} still in flight when the drain ended",
            "0",
            f"They count with their age (marked ≥). Raise --drain-timeout (now {facts.plan.drain_timeout_s} s) "
            "or bound them with --request-timeout.",
        )
    sample, percent = _scarcest_sample(facts, summary)
    needed = least_count(percent)
    if sample is not None and sample.count < needed:
        yield Finding(
            "too_few_samples",
            "warning",
            f"{pluralize(sample.count, 'sample', 'samples')} for p{percent:g}",
            f"{needed:,}",
            f"With so few, the percentile is the largest value: use {longer_load(facts.plan.load)}.",
        )


def session_findings(facts: WaveFacts, summary: Summary) -> Iterator[Finding]:
    """Sessions that did not end, or whose own code raised."""
    sessions = summary.sessions
    if sessions is None:
        return
    if sessions.open:
        yield Finding(
            "sessions_open",
            "warning",
            f"{pluralize(sessions.open, 'session', 'sessions')} open at the end",
            "0",
            "They count as not completed, and their durations as at least their age (marked ≥). Raise "
            f"--drain-timeout (now {facts.plan.drain_timeout_s} s) above the duration of a session.",
        )
    if sessions.raised:
        logs = "logs/worker_0.log"
        yield Finding(
            "sessions_raised",
            "invalid" if sessions.raised > FAILED_HERE_SHARE * sessions.started else "warning",
            f"{pluralize(sessions.raised, 'session', 'sessions')} ended by an error in the file's own code",
            "0",
            f"They count as not completed, and their next turns were not sent. See {logs} in the run directory, and "
            "fix session_factory.",
        )
    yield from _together(facts, sessions)


def _together(facts: WaveFacts, sessions: Sessions) -> Iterator[Finding]:
    """Sessions of a closed loop that were all at their first turn at once, in a wave that is not much longer."""
    turns, duration = sessions.turns, sessions.duration
    if not isinstance(facts.plan.load, ClosedLoop) or facts.plan.warmup_ns or turns is None or duration is None:
        return
    middle_s = duration.percentile(50)
    seconds = (facts.window.planned_ns or facts.window.duration_ns) / NS
    rounds = seconds / middle_s if middle_s else LEAST_ROUNDS
    if turns.maximum > 1 and rounds < LEAST_ROUNDS:
        yield Finding(
            "sessions_began_together",
            "warning",
            f"all sessions began with their first turn, and the wave is only {rounds:.2g} times as long as one",
            f"{LEAST_ROUNDS} times",
            "First turns are more frequent, and contexts shorter, than among users who came at different times. Add "
            f"--warmup {max(math.ceil(middle_s), 1)}, about as long as a session: it spreads their starts.",
        )


def metric_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Metrics of the server that did not come, or not all."""
    asked = [metric for metric in facts.server_metrics or () if metric.asked]
    short = [metric for metric in asked if not metric.complete or None in metric.statistics.values()]
    if short:
        yield Finding(
            "server_metrics",
            "warning",
            f"{len(short)} of {len(asked)} server metrics are missing or incomplete",
            "0",
            "The report gives the reason beside each.",
        )


def usage_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Tokens that requests cannot have had."""
    if wrong := _impossible(facts):
        yield Finding(
            "impossible_usage",
            "warning",
            f"{wrong:,} of {facts.ledger.ok:,} answers report fewer output tokens than the pieces that came, or more "
            f"than {MOST_TOKENS:,}",
            "0",
            "If they came in pieces, the pieces were counted instead. Check the usage that the server reports, and "
            "that invoke yields only generated text.",
        )


def _impossible(facts: WaveFacts) -> int:
    """The number of ok requests whose usage cannot be."""
    if facts.counts is not None:
        return facts.counts.window.total("impossible")
    parts = facts.records.parts("outcome", "chunks", "tokens_out")
    return sum(int(np.count_nonzero(part.outcome("ok") & impossible_usage(part))) for part in parts)


def _scarcest_sample(facts: WaveFacts, summary: Summary) -> tuple[Distribution | None, float]:
    """The highest percentile that is reported or limited, and the sample it is taken from."""
    limits = [float(slo.stat[1:]) for slo in facts.plan.slos if slo.stat[1:2].isdigit()]
    return summary.latency, max([99.0, *limits])
