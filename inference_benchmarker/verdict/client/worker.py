"""Tells whether the workers themselves were the limit: late, busy, held up, or building payloads. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from inference_benchmarker.facts.on_time import lag_ns
from inference_benchmarker.facts.turns import of_turns
from inference_benchmarker.plan.slo import FIRST_TURN, LATER_TURNS
from inference_benchmarker.records.ordered import in_order
from inference_benchmarker.verdict.client.evidence import Evidence, most_in_flight
from inference_benchmarker.verdict.client.late_cause import (
    BUILD_FLOOR_S,
    STARVED_SHARE,
    hiccup_advice,
    is_starved,
    late_advice,
    others_advice,
    shown_by_process,
    starved_advice,
)
from inference_benchmarker.verdict.client.lateness import SPOILING_S, Kept, Lateness, Moved, limits_spoilt, moved
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.verdict.missed_limits import value_text
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.client_use import LoopDelay, WorkerUse
    from inference_benchmarker.summary.summary import Summary

SCHEDULE_LAG: Final = "schedule_lag"
LATE_ARRIVALS: Final = "late_arrivals"
P99_MOVED: Final = "raised the p99 of response time"
LAG_FLOOR_S = 0.005
LAG_SHARE_OF_LATENCY = 0.1
CPU_LIMIT = 0.9  # of a core, as Locust's own warning; but over the whole wave, not ten seconds of it
_MOST_HOSTS = 5
LEAST_BEATS = 20
BEATS_FOR_P99 = 300  # of fewer, p95: so that several beats were late, not one by a hiccup of the machine
BUILD_SHARE = 0.1
HEARTBEAT_LOSS_S = 3.0  # Locust calls a worker missing when three heartbeats, one a second, are lost


def worker_findings(evidence: Evidence) -> Iterator[Finding]:
    """The findings on this client's own processes."""
    for check in (_schedule_lag, _loop_blocked, _heartbeats_missed, _payload_building, _payload_failed, _worker_cpu):
        yield from check(evidence)


def lag_limit_s(summary: Summary) -> float:
    """Lag p99 above max(5 ms, 10% of the median latency; of the median TTFT for streams) spoils the numbers."""
    typical = summary.ttft or summary.latency
    median = typical.percentile(50) if typical else 0.0
    return max(LAG_FLOOR_S, LAG_SHARE_OF_LATENCY * median)


def _schedule_lag(evidence: Evidence) -> Iterator[Finding]:
    """Lateness that is steady, or decides a limit, makes the wave INVALID; a hiccup that moved a percentile warns."""
    if not evidence.facts.paced:
        return
    found = [
        replace(each, measured=prefix + each.measured)
        for prefix, part in _paced_parts(evidence)
        for each in _lag_of(part)
    ]
    is_steady = any(finding.severity == "invalid" for finding in found)
    spoilt = [] if is_steady else limits_spoilt(evidence.facts, evidence.summary)
    yield from [_limit_spoilt(evidence, spoilt[0])] if spoilt else found


def _paced_parts(evidence: Evidence) -> Iterator[tuple[str, Evidence]]:
    """The wave; of sessions the first turns, where they have a schedule, and the later, which are due by answers."""
    if not evidence.facts.has_sessions:
        yield "", evidence
        return
    asked = (
        {FIRST_TURN: "first turns: ", LATER_TURNS: "later turns: "} if evidence.facts.open_loop else {LATER_TURNS: ""}
    )
    for turns, prefix in asked.items():
        if turns in evidence.summary.of_turns:
            yield prefix, Evidence(of_turns(evidence.facts, turns), evidence.summary.of_turns[turns])


def _lag_of(evidence: Evidence) -> Iterator[Finding]:
    """The findings on the lag of the requests of a wave, or of some turns of it."""
    facts, summary = evidence.facts, evidence.summary
    limit_s, lateness = lag_limit_s(summary), _lateness(evidence)
    if lateness is None or summary.lag is None:
        return
    if lateness.is_steady:
        p99 = duration_text(summary.lag.percentile(99), limit_s)
        late = late_hosts(summary, limit_s)[:_MOST_HOSTS]
        measured = f"{', '.join(late)}{': ' if late else ''}p99 {p99}; {lateness.text}"
        yield Finding(SCHEDULE_LAG, "invalid", measured, duration_text(limit_s), late_advice(evidence, limit_s))
    elif change := moved(facts, summary, limit_s):
        measured = f"{lateness.text}; {_changed(change)}"
        yield Finding(LATE_ARRIVALS, "warning", measured, duration_text(limit_s), hiccup_advice(evidence, limit_s))


def late_hosts(summary: Summary, limit_s: float) -> tuple[str, ...]:
    """The names of the hosts that were late, where others were not."""
    late = tuple(row.host.name for row in summary.hosts if row.lag is not None and row.lag.percentile(99) > limit_s)
    return late if len(late) < len(summary.hosts) else ()


def _changed(change: Moved) -> str:
    value, without = duration_text(change.value, change.without), duration_text(change.without, change.value)
    lower = f", and other percentiles from p{change.lowest:g} on" if change.lowest < change.percent else ""
    return f"this raised the p{change.percent:g} of response time from {without} to {value}{lower}"


def _limit_spoilt(evidence: Evidence, rest: Kept) -> Finding:
    """The client's lag alone broke a limit: whether the endpoint keeps it is not known."""
    slo, late = rest.slo, Lateness.of(evidence.facts, SPOILING_S).text
    value = value_text(slo, None if rest.part is None else rest.part.measured(slo.metric, slo.stat))
    measured = f"{late}; {slo.expression} is missed with that lag and met without it ({slo.stat} {value})"
    return Finding(SCHEDULE_LAG, "invalid", measured, duration_text(SPOILING_S), late_advice(evidence, SPOILING_S))


def _lateness(evidence: Evidence) -> Lateness | None:
    """The late arrivals; None where none was later than the limit."""
    lag, limit_s = evidence.summary.lag, lag_limit_s(evidence.summary)
    return None if lag is None or lag.maximum <= limit_s else Lateness.of(evidence.facts, limit_s)


def in_time_until_ns(evidence: Evidence) -> int:
    """When the schedule began to be late: one in a hundred arrivals may be later than the lag limit before.

    Where requests were counted that is not known: from the wave's start on.
    """
    if evidence.facts.counts is not None:
        return 0
    records, limit_ns = evidence.facts.records, lag_limit_s(evidence.summary) * NS
    allowed = len(records) // 100
    for late in in_order(records, "due", "sent", "build_ns", where=lambda part: lag_ns(part) > limit_ns):
        if len(late) > allowed:
            return int(late[allowed])
        allowed -= len(late)
    return max((int(part.int("due").max()) for part in records.parts("due")), default=0)


def _is_late(evidence: Evidence) -> bool:
    """Tells whether the schedule was steadily late."""
    lateness = _lateness(evidence) if evidence.facts.paced else None
    return lateness is not None and lateness.is_steady


def _worker_cpu(evidence: Evidence) -> Iterator[Finding]:
    shares = [worker.cpu_share or 0.0 for worker in evidence.workers]
    busiest = max(shares, default=0.0)
    if busiest > CPU_LIMIT:
        worker = evidence.named(shares.index(busiest))
        yield Finding(
            "worker_cpu",
            "warning",
            f"{worker} used {percent_text(busiest, CPU_LIMIT)} of a core while it sent",
            f"{percent_text(CPU_LIMIT)}",
            f"Make invoke faster, or {evidence.more_workers()}.",
        )


def _loop_blocked(evidence: Evidence) -> Iterator[Finding]:
    """It stands for the schedule lag where nothing is paced, and makes the wave INVALID there.

    Where no worker ever had two requests in flight, nothing of the endpoint's waited while one of them computed.
    """
    late = [(_late_beats(worker.loop_delay), worker) for worker in evidence.workers if worker.loop_delay]
    (percent, delay), worst = max(late, key=lambda entry: entry[0][1], default=((0, 0.0), None))
    limit = lag_limit_s(evidence.summary)
    if worst is not None and delay > limit and (_is_late(evidence) or most_in_flight(evidence.facts) > 1):
        where, late_by = evidence.sender_of(worst).prefix, duration_text(delay, limit)
        yield Finding(
            "loop_blocked",
            "warning" if evidence.facts.paced else "invalid",
            f"{where}event-loop delay p{percent} {late_by}{_culprit(evidence, worst)}",
            duration_text(limit),
            _block_advice(evidence, worst),
        )


def _late_beats(delay: LoopDelay) -> tuple[int, float]:
    """The percentile that this many beats have, and its value."""
    if delay.count < LEAST_BEATS:
        return 0, 0.0
    return (99, delay.p99_s) if delay.count >= BEATS_FOR_P99 else (95, delay.p95_s)


def _had_no_cpu(evidence: Evidence, worker: WorkerUse) -> bool:
    """Tells whether no code of the user's was seen to hold the worker up, on a host that others kept busy."""
    return (worker.block is None or worker.block.part == "tool") and evidence.sender_of(worker).others_took_cores


def _culprit(evidence: Evidence, worker: WorkerUse) -> str:
    """The place that held the loop up, and for how long at most."""
    block = worker.block
    where = ""
    if block is not None and not _had_no_cpu(evidence, worker):
        name = {"invoke": block.where, "payload": f"payload building, {block.where}", "tool": "the tool itself"}
        where = f", blocked by {name[block.part]} for up to {duration_text(block.longest_s)} at a time"
    if (worker.starved_share or 0.0) > STARVED_SHARE and not is_starved(worker):  # else the advice says it
        where += f"; the worker waited {percent_text(worker.starved_share or 0.0)} of the time for a free core"
    return where


def _heartbeats_missed(evidence: Evidence) -> Iterator[Finding]:
    silent = [worker.silence_s for worker in evidence.workers]
    longest = max(silent, default=0.0)
    if longest > HEARTBEAT_LOSS_S:
        worker = evidence.named(silent.index(longest))
        yield Finding(
            "heartbeats_missed",
            "warning",
            f"{worker} was silent for {duration_text(longest)}",
            duration_text(HEARTBEAT_LOSS_S),
            "A worker reports twice per second unless something blocks it: invoke, or a host that does not let it "
            "run. Its log is in the run directory.",
        )


def _block_advice(evidence: Evidence, worker: WorkerUse) -> str:
    if is_starved(worker):
        limit_s = lag_limit_s(evidence.summary)
        advice = starved_advice(evidence, worker, limit_s)
        is_stated = _is_late(evidence) and late_advice(evidence, limit_s) == advice
        return f"{SCHEDULE_LAG} names the cause." if is_stated else advice
    if _had_no_cpu(evidence, worker):
        return others_advice(evidence, evidence.sender_of(worker))
    if worker.block is None:
        return (
            "None of its code was running then: garbage collection, a thread that holds Python's global lock, or "
            f"other programs stopped it{shown_by_process(evidence)}."
        )
    if worker.block.part == "payload":
        return f'Compute payloads before the wave ("pre_computed": True), or {evidence.more_workers()}.'
    if worker.block.part == "invoke":
        return (
            "While it computes, or waits in a call that blocks gevent, the worker does nothing else: make it "
            f"shorter, or {evidence.more_workers()}. The stack is in summary.json."
        )
    return f"{evidence.more_workers()[:1].upper()}{evidence.more_workers()[1:]}."


_OF_PAYLOADS = (
    'It adds to the response time, and is not the endpoint\'s: compute payloads before the wave ("pre_computed": True).'
)
_OF_SESSIONS = (
    "It adds to the response time, and is the session's own code between two turns, also where that reads what invoke "
    "left of an answer: read it in invoke, or yield its pieces there."
)


def _payload_building(evidence: Evidence) -> Iterator[Finding]:
    """Longer than a tenth of the latency, or long at all where it was caught holding up the event loop.

    There the latency is no measure: it waited for the same loop.
    """
    build, latency = evidence.summary.build, evidence.summary.latency
    if build is None or latency is None:
        return
    caught = [worker.block.where for worker in evidence.workers if worker.block and worker.block.part == "payload"]
    limit = BUILD_FLOOR_S if caught else max(BUILD_FLOOR_S, BUILD_SHARE * latency.mean)
    if round(build.mean, 9) > limit:  # a mean of equal values may miss them by a rounding
        where = f" in {caught[0]}" if caught else ""
        yield Finding(
            "payload_building",
            "warning",
            f"{duration_text(build.mean, limit)} on average{where}",
            duration_text(limit),
            _OF_SESSIONS if evidence.facts.has_sessions else _OF_PAYLOADS,
        )


def _payload_failed(evidence: Evidence) -> Iterator[Finding]:
    rows = [row for row in evidence.summary.errors if row.key.partition(" ")[0] == "PayloadError"]
    count = sum(row.count for row in rows)
    if count:
        yield Finding(
            "payload_failed",
            evidence.of_failed_here(count),
            f"{count:,} payloads could not be built ({rows[0].key})",
            "0",
            "Nothing was sent for them: fix payload_factory; summary.json has the first messages of each error.",
        )
