"""The findings on a wave itself: its processes, the load that it offered, and how much was measured. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.facts.hosts import host_of_worker
from inference_benchmarker.records.record import OUTCOMES
from inference_benchmarker.records.response import MOST_TOKENS
from inference_benchmarker.summary.request_times import impossible_usage
from inference_benchmarker.verdict.advice import less_load, longer_load
from inference_benchmarker.verdict.client.evidence import FAILED_HERE_SHARE
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import percent_text, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary

LEAST_SENT_SHARE = 0.99


def process_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Processes and hosts of the client that were lost or changed what they were to do."""
    ledger = facts.ledger
    if facts.loopback_down_s is not None:
        yield Finding(
            "loopback_down",
            "invalid",
            f"this host could not reach itself on 127.0.0.1 from about {facts.loopback_down_s:.0f} s on",
            "the processes of the wave reach each other throughout",
            "The loopback interface (lo) was down, or a firewall closed it: what the workers reported since may be "
            "late or lost. As root, `ip link set lo up` brings it up.",
        )
    if facts.primary_lost:
        yield Finding(
            "primary_lost",
            "invalid",
            "the primary process ended in the middle of the wave",
            "it runs until its last report",
            "See logs/primary.log in the run directory; this report has what was reported until then.",
        )
    if facts.lost_workers:
        yield Finding(
            "worker_lost",
            "invalid",
            f"{_where(facts)}{len(facts.lost_workers)} of {facts.plan.workers} workers, {ledger.lost:,} arrivals with "
            "them",
            "0 workers",
            f"See logs/worker_{facts.lost_workers[0]}.log in the run directory: killed, out of memory, "
            "or blocked in invoke forever.",
        )
    if facts.disk_error:
        yield Finding(
            "disk_full",
            "invalid",
            f"the run directory could not be written: {facts.disk_error}",
            "all records stored",
            "Free some space, or choose another place with --output-dir; the wave was stopped when it happened.",
        )
    if facts.left_behind:
        yield Finding(
            "processes_left",
            "warning",
            f"{pluralize(len(facts.left_behind), 'process', 'processes')} outlived the wave: "
            + one_line(", ".join(facts.left_behind)),
            "0",
            "They were ended. This report does not count what they sent: let invoke stop the processes that it starts.",
        )
    if facts.foreign_connections:
        yield Finding(
            "foreign_connections",
            "warning",
            pluralize(facts.foreign_connections, "connection", "connections") + " of other programs to the wave's port",
            "0",
            "They were refused and changed nothing. Leave --port out, or check what else uses that port: a Locust "
            "worker of another test, a port scan.",
        )
    if not all(ledger.balanced for ledger in facts.ledgers):
        yield Finding(
            "ledger_broken",
            "invalid",
            f"scheduled {ledger.scheduled:,}, sent {ledger.sent:,}, repeated {ledger.repeated:,}, "
            f"dropped {ledger.dropped:,}, lost {ledger.lost:,}",
            "scheduled + repeated = sent + dropped + lost",
            "This is a bug in this tool: please report it with the run directory.",
        )
    if unrecorded := _unrecorded(facts) or _miscounted(facts):
        yield Finding(
            "ledger_broken",
            "invalid",
            unrecorded,
            "each is recorded once",
            "A worker was out of memory while recording, so the report has the other requests alone: keep less in "
            "invoke, or give the worker more memory (ulimit -v shows the limit).",
        )


def load_findings(facts: WaveFacts) -> Iterator[Finding]:
    """The load that was planned and not offered."""
    ledger = facts.ledger
    if ledger.dropped:
        share = ledger.dropped / (ledger.scheduled or ledger.dropped)  # a broken ledger may have none planned
        yield Finding(
            "dropped_arrivals",
            "invalid",
            f"{pluralize(ledger.dropped, 'arrival', 'arrivals')} ({percent_text(share)})",
            "0",
            "All allowed requests were in flight: answers came more slowly than arrivals. Use "
            f"{less_load(facts.plan.load)}, or raise --max-in-flight (and ulimit -n).",
        )
    if ledger.dropped_turns:
        yield Finding(
            "dropped_arrivals",
            "invalid",
            f"{pluralize(ledger.dropped_turns, 'later turn', 'later turns')} of sessions, which ended with them",
            "0",
            "All allowed requests were in flight: answers came more slowly than turns. "
            f"Use {less_load(facts.plan.load)}, or raise --max-in-flight (and ulimit -n).",
        )
    if ledger.late_changes:
        late = [number for number, each in enumerate(facts.ledgers) if each.late_changes]
        yield Finding(
            "schedule_late",
            "invalid",
            f"{_workers(late)} received {pluralize(ledger.late_changes, 'change', 'changes')} of the load too late",
            "each is received before it takes effect",
            "What was sent around a change (the start, another rate, the planned end) differs from the plan, because "
            "the worker or the link to its host was blocked. Let invoke block less, use more --workers, or run fewer "
            "other programs on this machine.",
        )
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


def _where(facts: WaveFacts) -> str:
    """The hosts whose workers were lost."""
    names = dict.fromkeys(host_of_worker(facts.hosts, number) for number in facts.lost_workers)
    return f"{', '.join(filter(None, names))}: " if facts.hosts else ""


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
    needed = math.ceil(round(100 / (100 - percent), 6))
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
            f"{pluralize(sessions.open, 'session', 'sessions')} open at the end, "
            f"{pluralize(facts.ledger.not_begun, 'turn', 'turns')} not begun",
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


def _unrecorded(facts: WaveFacts) -> str:
    """The requests whose record was lost, in words: a worker that reported to the end leaves none in flight."""
    there = (ledger for number, ledger in enumerate(facts.ledgers) if number not in facts.lost_workers)
    lost = sum(ledger.in_flight for ledger in there)
    return f"{lost:,} of {facts.ledger.sent:,} requests were sent and not recorded" if lost > 0 else ""


def _miscounted(facts: WaveFacts) -> str:
    """Of a wave without records what was not counted as often as it came, first sendings, in words; else nothing."""
    if facts.counts is None:
        return ""
    window = facts.counts.window
    pairs = ((name, getattr(facts.ledger, name), window.total(name)) for name in ("sent", *OUTCOMES))
    return next((f"{came:,} {name} requests, {found:,} counted" for name, came, found in pairs if came != found), "")


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
