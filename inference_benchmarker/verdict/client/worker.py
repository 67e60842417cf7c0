"""Tells whether the workers themselves were the limit: late, busy, held up, or building payloads. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from inference_benchmarker.records.ordered import in_order
from inference_benchmarker.units import NS
from inference_benchmarker.verdict.client.evidence import most_in_flight, others_took_cores, workers_cpu_share
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.wording import duration_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.client_use import LoopDelay, WorkerUse
    from inference_benchmarker.records.columns import Int64, Records
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.client.evidence import Evidence

SCHEDULE_LAG: Final = "schedule_lag"
LAG_FLOOR_S = 0.005
LAG_SHARE_OF_LATENCY = 0.1
CPU_LIMIT = 0.9  # of a core, as Locust's own warning; but over the whole wave, not ten seconds of it
LEAST_BEATS = 20
BEATS_FOR_P99 = 300  # of fewer, p95: so that several beats were late, not one by a hiccup of the machine
BUILD_FLOOR_S = 0.001
BUILD_SHARE = 0.1
STARVED_SHARE = 0.1
SHOWN_BY_PROCESS = "--sample-client-hw shows what each process of the wave took."
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
    summary = evidence.summary
    if _is_late(evidence) and summary.lag is not None:
        lag, limit = summary.lag.percentile(99), lag_limit_s(summary)
        measured = f"p99 {duration_text(lag, limit)}"
        yield Finding(SCHEDULE_LAG, "invalid", measured, duration_text(limit), _lag_advice(evidence))


def in_time_until_ns(evidence: Evidence) -> int:
    """When the schedule began to be late: one in a hundred arrivals may be later than the lag limit before.

    Where requests were counted that is not known: from the wave's start on.
    """
    if evidence.facts.counts is not None:
        return 0
    records, limit_ns = evidence.facts.records, lag_limit_s(evidence.summary) * NS
    allowed = len(records) // 100
    for late in in_order(records, "due", "sent", "build_ns", where=lambda part: _lag(part) > limit_ns):
        if len(late) > allowed:
            return int(late[allowed])
        allowed -= len(late)
    return max((int(part.int("due").max()) for part in records.parts("due")), default=0)


def _lag(records: Records) -> Int64:
    return records.int("sent") - records.int("build_ns") - records.int("due")


def _is_late(evidence: Evidence) -> bool:
    """Tells whether the schedule lag is above its limit."""
    lag = evidence.summary.lag
    return evidence.facts.paced and lag is not None and lag.percentile(99) > lag_limit_s(evidence.summary)


def _lag_advice(evidence: Evidence) -> str:
    """The cause that the evidence names, and one thing to do."""
    build = evidence.summary.build
    if build is not None and build.mean > BUILD_FLOOR_S:
        return (
            f"Building a payload takes {duration_text(build.mean)} on average: compute payloads before the wave "
            f'("pre_computed": True), or {evidence.more_workers()}.'
        )
    starved = next((worker for worker in evidence.workers if _is_starved(worker)), None)
    if starved is not None:
        return _starved_advice(starved)
    for worker in evidence.workers:
        if worker.block and worker.block.part == "invoke":
            where = worker.block.where
            return f"{where} keeps the worker from sending on time: make it cheaper, or {evidence.more_workers()}."
    if others_took_cores(evidence.facts):
        return _others_advice(evidence)
    return f"The client cannot keep this pace: {evidence.more_workers()}."


def _is_starved(worker: WorkerUse) -> bool:
    """Tells whether it waited for a free core rather than for its own code."""
    waited = worker.starved_share or 0.0
    return waited > STARVED_SHARE and waited > (worker.cpu_share or 0.0)


def _starved_advice(worker: WorkerUse) -> str:
    return (
        f"A worker waited {percent_text(worker.starved_share or 0.0)} of the time for a free core: run less beside it, "
        f"or use a bigger client; {SHOWN_BY_PROCESS}"
    )


def _others_advice(evidence: Evidence) -> str:
    """The advice where others left too little of a host, as ``others_took_cores`` tells."""
    host, own = evidence.facts.host, workers_cpu_share(evidence.facts)
    assert host is not None
    assert own is not None
    return (
        f"Other programs on this host took the CPU (its {host.cores} cores were {host.cpu_share_mean:.0%} busy on "
        f"average and {host.cpu_share_max:.0%} at most, {own:.1%} with this wave's workers): run less beside it, or "
        f"use a bigger client; {SHOWN_BY_PROCESS}"
    )


def _worker_cpu(evidence: Evidence) -> Iterator[Finding]:
    shares = [worker.cpu_share or 0.0 for worker in evidence.workers]
    busiest = max(shares, default=0.0)
    if busiest > CPU_LIMIT:
        yield Finding(
            "worker_cpu",
            "warning",
            f"worker {shares.index(busiest)} used {percent_text(busiest, CPU_LIMIT)} of a core while it sent",
            f"{percent_text(CPU_LIMIT)}",
            f"Make invoke cheaper, or {evidence.more_workers()}.",
        )


def _loop_blocked(evidence: Evidence) -> Iterator[Finding]:
    """It stands for the schedule lag where nothing is paced, and makes the wave INVALID there.

    Where no worker ever had two requests in flight, nothing of the endpoint's waited while one of them computed.
    """
    late = [(_late_beats(worker.loop_delay), worker) for worker in evidence.workers if worker.loop_delay]
    (percent, delay), worst = max(late, key=lambda entry: entry[0][1], default=((0, 0.0), None))
    limit = lag_limit_s(evidence.summary)
    if worst is not None and delay > limit and (_is_late(evidence) or most_in_flight(evidence.facts) > 1):
        yield Finding(
            "loop_blocked",
            "warning" if evidence.facts.paced else "invalid",
            f"p{percent} {duration_text(delay, limit)} until the event loop comes round{_culprit(evidence, worst)}",
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
    return (worker.block is None or worker.block.part == "tool") and others_took_cores(evidence.facts)


def _culprit(evidence: Evidence, worker: WorkerUse) -> str:
    """The place that held the loop up, and for how long at most."""
    block = worker.block
    where = ""
    if block is not None and not _had_no_cpu(evidence, worker):
        name = {"invoke": block.where, "payload": f"payload building, {block.where}", "tool": "the tool itself"}
        where = f", held up by {name[block.part]}, {duration_text(block.longest_s)} in a row at the longest"
    if (worker.starved_share or 0.0) > STARVED_SHARE:
        where += f"; the worker waited {percent_text(worker.starved_share or 0.0)} of the time for a free core"
    return where


def _heartbeats_missed(evidence: Evidence) -> Iterator[Finding]:
    silent = [worker.silence_s for worker in evidence.workers]
    longest = max(silent, default=0.0)
    if longest > HEARTBEAT_LOSS_S:
        yield Finding(
            "heartbeats_missed",
            "warning",
            f"worker {silent.index(longest)} was silent for {duration_text(longest)}",
            duration_text(HEARTBEAT_LOSS_S),
            "It reports twice a second unless something holds it up: invoke, or a host that does not let it run. "
            "Its log is in the run directory.",
        )


def _block_advice(evidence: Evidence, worker: WorkerUse) -> str:
    if _is_starved(worker):
        return _starved_advice(worker)
    if _had_no_cpu(evidence, worker):
        return _others_advice(evidence)
    if worker.block is None:
        return (
            "None of its code was seen running then: garbage collection, a thread that holds Python's lock, or other "
            f"programs kept it from running; {SHOWN_BY_PROCESS}"
        )
    if worker.block.part == "payload":
        return f'Compute payloads before the wave ("pre_computed": True), or {evidence.more_workers()}.'
    if worker.block.part == "invoke":
        return (
            "While it computes, or waits in a way that gevent cannot switch, nothing else of the worker runs: make it "
            f"shorter, or {evidence.more_workers()}. The stack is in summary.json."
        )
    return f"{evidence.more_workers()[:1].upper()}{evidence.more_workers()[1:]}."


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
            'It is in the response time, not the endpoint\'s: compute payloads before the wave ("pre_computed": True).',
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
            "Nothing was sent for them: mend payload_factory; the first texts of each error are in summary.json.",
        )
