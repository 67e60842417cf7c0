"""Says who was the limit of a wave: this client, with the evidence, or the endpoint. Pure.

The client is blamed only for what was measured in it. The endpoint is named only where the client is clean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.finding import Finding, duration_text, percent_text
from inference_benchmarker.plan import DEFAULT_MAX_IN_FLIGHT, NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.columns import Floats
    from inference_benchmarker.finding import Severity
    from inference_benchmarker.observed import Observed
    from inference_benchmarker.summary import Summary
    from inference_benchmarker.usage import Connections, LoopDelay, WorkerUse

LAG_FLOOR_S = 0.005
LAG_SHARE_OF_LATENCY = 0.1
CPU_LIMIT = 0.9  # of a core, as Locust's own warning; but over the whole wave, not ten seconds of it
LEAST_BEATS = 20
BEATS_FOR_P99 = 300  # of fewer, p95: so that three beats or more were late, not one by a hiccup of the machine
BUILD_FLOOR_S = 0.001
BUILD_SHARE = 0.1
DISCARDED_SHARE = 0.01
WAITING_SHARE = 0.05
LEAST_LOOKS = 20
NEAR = 0.9
STARVED_SHARE = 0.1
FAILED_HERE_SHARE = 0.01  # as the share of a plan that may be left unsent
HEARTBEAT_LOSS_S = 3.0  # Locust calls a worker missing when three heartbeats, one a second, are lost
ANSWERED_SHARE = 0.95
REFUSALS = (" 429", " 503", "Throttl", "TooManyRequests", "ServiceUnavailable")  # in an error's key: no capacity

CLIENT_CODES = frozenset(
    {
        "schedule_lag",
        "worker_cpu",
        "loop_blocked",
        "payload_building",
        "payload_failed",
        "connection_pool",
        "descriptors",
        "ports",
        "local_network",
    }
)
SERVER_LIMITED = "server_limited"


def limits_found(observed: Observed, summary: Summary) -> list[Finding]:
    """What limited the wave on this side; ``server_limited`` where nothing did and the endpoint fell behind."""
    case = _Case(observed, summary)
    found = [finding for check in _CHECKS for finding in check(case)]
    if not any(finding.code in CLIENT_CODES for finding in found):
        found += _server_limited(case)
    return found


def lag_limit_s(summary: Summary) -> float:
    """Lag p99 above max(5 ms, 10% of the median latency; of the median TTFT for streams) spoils the numbers."""
    typical = summary.ttft or summary.latency
    median = typical.percentile(50) if typical else 0.0
    return max(LAG_FLOOR_S, LAG_SHARE_OF_LATENCY * median)


@dataclass(frozen=True)
class _Case:
    observed: Observed
    summary: Summary

    @property
    def workers(self) -> tuple[WorkerUse, ...]:
        return self.observed.workers

    @property
    def cores(self) -> int | None:
        return None if self.observed.host is None else self.observed.host.cores

    def total(self, count: Callable[[Connections], int]) -> int:
        return sum(count(worker.connections) for worker in self.workers)

    def refused(self, *names: str) -> int:
        """Connections this host refused; none counts where every request was answered in the end."""
        refused = self.total(lambda connections: sum(connections.refused.get(name, 0) for name in names))
        return min(refused, self.summary.ledger.failed)

    def of_failed_here(self, count: int) -> Severity:
        """A request that failed before it left was not offered: more than 1% of them, and the plan was not."""
        return "invalid" if count > FAILED_HERE_SHARE * self.summary.ledger.scheduled else "warning"

    def more_workers(self) -> str:
        """What to do about one thread that has too much to do."""
        if self.cores is not None and self.observed.plan.workers >= self.cores:
            return (
                f"All {self.cores} cores have a worker: a bigger client, several of them, or a lower --client-rps "
                "(`benchmark client rps-saturation` tells what this one can send)"
            )
        spread = "" if self.cores is None else f" (this host has {self.cores} cores)"
        return f"use more --workers{spread}; `benchmark client worker-saturation` tells what one can send"


def _schedule_lag(case: _Case) -> Iterator[Finding]:
    summary = case.summary
    if not case.observed.open_loop or summary.lag is None:
        return
    lag, limit = summary.lag.percentile(99), lag_limit_s(summary)
    if lag > limit:
        measured = f"p99 {duration_text(lag, limit)}"
        yield Finding("schedule_lag", "invalid", measured, duration_text(limit), _lag_advice(case))


def _lag_advice(case: _Case) -> str:
    """The cause that the evidence names, and one thing to do."""
    build = case.summary.build
    if build is not None and build.mean > BUILD_FLOOR_S:
        return (
            f"Building a payload takes {duration_text(build.mean)} on average: compute payloads before the wave "
            f'("pre_computed": True), or {case.more_workers()}.'
        )
    starved = next((worker for worker in case.workers if _is_starved(worker)), None)
    if starved is not None:
        return _starved_advice(starved)
    for worker in case.workers:
        if worker.block and worker.block.part == "invoke":
            where = worker.block.where
            return f"{where} keeps the worker from sending on time: make it cheaper, or {case.more_workers()}."
    return f"The client cannot keep this pace: {case.more_workers()}."


def _is_starved(worker: WorkerUse) -> bool:
    """Whether it waited for a free core rather than for its own code."""
    waited = worker.starved_share or 0.0
    return waited > STARVED_SHARE and waited > (worker.cpu_share or 0.0)


def _starved_advice(worker: WorkerUse) -> str:
    return (
        f"A worker waited {percent_text(worker.starved_share or 0.0)} of the time for a free core: run less beside it, "
        "or use a bigger client; --sample-client-hw shows what each process of the wave took."
    )


def _worker_cpu(case: _Case) -> Iterator[Finding]:
    shares = [worker.cpu_share or 0.0 for worker in case.workers]
    busiest = max(shares, default=0.0)
    if busiest > CPU_LIMIT:
        yield Finding(
            "worker_cpu",
            "warning",
            f"worker {shares.index(busiest)} used {percent_text(busiest, CPU_LIMIT)} of a core while it sent",
            f"{percent_text(CPU_LIMIT)}",
            f"Make invoke cheaper, or {case.more_workers()}.",
        )


def _loop_blocked(case: _Case) -> Iterator[Finding]:
    """In the closed loop this is what the schedule lag is in the open one, so it makes the wave INVALID there."""
    late = [(_late_beats(worker.loop_delay), worker) for worker in case.workers if worker.loop_delay]
    (percent, delay), worst = max(late, key=lambda entry: entry[0][1], default=((0, 0.0), None))
    limit = lag_limit_s(case.summary)
    if worst is not None and delay > limit:
        yield Finding(
            "loop_blocked",
            "warning" if case.observed.open_loop else "invalid",
            f"p{percent} {duration_text(delay, limit)} until the event loop comes round{_culprit(worst)}",
            duration_text(limit),
            _block_advice(case, worst),
        )


def _late_beats(delay: LoopDelay) -> tuple[int, float]:
    """The percentile that this many beats have, and its value."""
    if delay.count < LEAST_BEATS:
        return 0, 0.0
    return (99, delay.p99_s) if delay.count >= BEATS_FOR_P99 else (95, delay.p95_s)


def _culprit(worker: WorkerUse) -> str:
    """Who held the loop up, and for how long at most."""
    block = worker.block
    where = ""
    if block is not None:
        name = {"invoke": block.where, "payload": f"payload building, {block.where}", "tool": "the tool itself"}
        where = f", held up by {name[block.part]}, {duration_text(block.longest_s)} at the longest"
    if (worker.starved_share or 0.0) > STARVED_SHARE:
        where += f"; the worker waited {percent_text(worker.starved_share or 0.0)} of the time for a free core"
    if worker.silence_s > HEARTBEAT_LOSS_S:
        where += f"; a worker was silent for {duration_text(worker.silence_s)}, Locust's heartbeats missed"
    return where


def _block_advice(case: _Case, worker: WorkerUse) -> str:
    if _is_starved(worker):
        return _starved_advice(worker)
    if worker.block is None:
        return "The host did not run the worker in time: run less beside it, or use a bigger client."
    if worker.block.part == "payload":
        return f'Compute payloads before the wave ("pre_computed": True), or {case.more_workers()}.'
    if worker.block.part == "invoke":
        return (
            "While it computes, or waits in a way that gevent cannot switch, nothing else of the worker runs: make it "
            f"shorter, or {case.more_workers()}. The stack is in summary.json."
        )
    return f"{case.more_workers()[:1].upper()}{case.more_workers()[1:]}."


def _payload_building(case: _Case) -> Iterator[Finding]:
    """Longer than a tenth of the latency, or long at all where it was caught holding up the event loop.

    There the latency is no measure: it waited for the same loop.
    """
    build, latency = case.summary.build, case.summary.latency
    if build is None or latency is None:
        return
    caught = [worker.block.where for worker in case.workers if worker.block and worker.block.part == "payload"]
    limit = BUILD_FLOOR_S if caught else max(BUILD_FLOOR_S, BUILD_SHARE * latency.mean)
    if build.mean > limit:
        where = f" in {caught[0]}" if caught else ""
        yield Finding(
            "payload_building",
            "warning",
            f"{duration_text(build.mean, limit)} on average{where}",
            duration_text(limit),
            'It is in the response time, not the endpoint\'s: compute payloads before the wave ("pre_computed": True).',
        )


def _payload_failed(case: _Case) -> Iterator[Finding]:
    rows = [row for row in case.summary.errors if row.key.split()[0] == "PayloadError"]
    count = sum(row.count for row in rows)
    if count:
        yield Finding(
            "payload_failed",
            case.of_failed_here(count),
            f"{count:,} payloads could not be built ({rows[0].key})",
            "0",
            "Nothing was sent for them: mend payload_factory; the first texts of each error are in summary.json.",
        )


def _connection_pool(case: _Case) -> Iterator[Finding]:
    sent = case.summary.ledger.sent
    discarded, opened = case.total(lambda c: c.discarded), case.total(lambda c: c.opened)
    looked_at, waiting = case.total(lambda c: c.looked_at), case.total(lambda c: c.waiting)
    if sent and discarded / sent > DISCARDED_SHARE:
        measured = f"{discarded:,} connections discarded by a full pool, {opened:,} opened for {sent:,} requests"
        yield Finding(
            "connection_pool",
            "warning",
            measured,
            f"{percent_text(DISCARDED_SHARE)} of requests",
            _pool_advice(case, "A new connection for each further request is in the latency"),
        )
    elif looked_at >= LEAST_LOOKS and waiting / looked_at > WAITING_SHARE:
        measured = f"{percent_text(waiting / looked_at)} of the requests in flight waited for their pool's connections"
        advice = _pool_advice(case, "That wait is in the latency")
        yield Finding("connection_pool", "warning", measured, percent_text(WAITING_SHARE), advice)


def _pool_advice(case: _Case, effect: str) -> str:
    size = f"{_most_in_flight(case.observed):,}"
    return (
        f"{effect}: the client's pool must hold all requests in flight of a worker, here up to {size} (boto3: "
        f"Config(max_pool_connections={size}), requests: HTTPAdapter(pool_maxsize), "
        "geventhttpclient: concurrency)."
    )


def _most_in_flight(observed: Observed) -> int:
    """The most requests that one worker had in flight at a time."""
    records = observed.records
    most = 0
    for worker in range(observed.plan.workers):
        mine = records.int("worker") == worker
        sent, done = np.sort(records.int("sent")[mine]), np.sort(records.int("done")[mine])
        over = np.searchsorted(done, sent, side="right")
        most = max(most, int((np.arange(1, len(sent) + 1) - over).max(initial=0)))
    return most


def _hidden_retries(case: _Case) -> Iterator[Finding]:
    retries, sent = case.total(lambda c: c.retries), case.summary.ledger.sent
    if retries:
        yield Finding(
            "hidden_retries",
            "warning",
            f"{retries:,} retries of the client library beneath {sent:,} requests",
            "0",
            "Failed attempts and the pauses after them are in the latency instead of the error count: turn retries off "
            '(boto3: Config(retries={"mode": "standard", "total_max_attempts": 1}), requests: max_retries=0).',
        )


def _descriptors(case: _Case) -> Iterator[Finding]:
    limit = max((worker.descriptor_limit for worker in case.workers), default=0)
    peak = max((worker.descriptors for worker in case.workers), default=0)
    advice = "Raise the limit (ulimit -Hn 65536) or use more --workers; `benchmark client limits` tells more."
    failed = max(case.refused("EMFILE", "ENFILE"), _out_of_files(case.summary))
    cap = sum(case.observed.caps)
    capped = case.observed.plan.max_in_flight is None and cap < DEFAULT_MAX_IN_FLIGHT
    if failed:
        measured, severity = f"{failed:,} requests failed for want of file descriptors", case.of_failed_here(failed)
    elif capped and case.summary.ledger.dropped:
        measured, severity = f"file descriptors allowed {cap:,} requests in flight, so arrivals were dropped", "warning"
    elif limit and peak > NEAR * limit:
        measured, severity = f"a worker had {peak:,} file descriptors open", "warning"
    else:
        return
    yield Finding("descriptors", severity, measured, f"{limit:,} open files", advice)


def _out_of_files(summary: Summary) -> int:
    """Requests whose error says so itself."""
    return sum(row.count for row in summary.errors if "EMFILE" in row.key or "Too many open files" in str(row.texts))


def _ports(case: _Case) -> Iterator[Finding]:
    host = case.observed.host
    ports = None if host is None else host.ephemeral_ports
    failed = case.refused("EADDRNOTAVAIL", "EADDRINUSE")
    limit = "0" if ports is None else f"{ports:,} ports"
    advice = "Let the client keep its connections open (a session, a pool): each closed one holds a port for 60 s."
    if failed:
        measured = f"{failed:,} requests failed for want of a free local port"
        yield Finding("ports", case.of_failed_here(failed), measured, limit, advice)
    elif ports and host is not None and (host.time_wait or 0) > NEAR * ports:
        yield Finding("ports", "warning", f"{host.time_wait:,} closed connections hold a local port", limit, advice)


def _local_network(case: _Case) -> Iterator[Finding]:
    names = ("ENETUNREACH", "ENETDOWN", "ENOBUFS", "EPERM", "EACCES")
    failed = case.refused(*names)
    if failed:
        seen = ", ".join(name for name in names if case.refused(name))
        yield Finding(
            "local_network",
            case.of_failed_here(failed),
            f"{failed:,} connections were refused by this host itself ({seen})",
            "0",
            "They never reached the endpoint: look at this host's routes, firewall and network buffers.",
        )


def _server_limited(case: _Case) -> Iterator[Finding]:
    """The endpoint fell behind while the client was clean: requests queued there, or it refused some."""
    measured = _dropped_for_the_endpoint(case) or _queue_growth(case) or _refusals(case)
    if measured is not None:
        lag = case.summary.lag
        clean = "" if lag is None else f", while the schedule lag stayed at p99 {duration_text(lag.percentile(99))}"
        yield Finding(
            SERVER_LIMITED,
            "warning",
            measured + clean,
            f"{percent_text(ANSWERED_SHARE)} answered",
            "More arrives than the endpoint answers, so latency tells how long the wave was, not how fast the endpoint "
            "is: find the rate it holds with lower --client-rps, or scale it.",
        )


def _dropped_for_the_endpoint(case: _Case) -> str | None:
    """Ten thousand requests in flight; a cap that the user set lower says nothing about the endpoint."""
    ledger = case.summary.ledger
    if ledger.dropped <= (1 - ANSWERED_SHARE) * ledger.scheduled or case.observed.plan.max_in_flight is not None:
        return None
    return f"{_completed_of_scheduled(case)}, and {sum(case.observed.caps):,} requests were in flight"


def _queue_growth(case: _Case) -> str | None:
    """How latency grew, where it grew so steadily that fewer than 95% of the arrivals can have been answered.

    A first-come first-served queue with arrivals at rate r and answers at rate c < r grows latency by
    s = r/c - 1 seconds a second, so c/r = 1/(1 + s). s is taken from the median latencies of the wave's second
    and last quarter, and must be three standard errors of their difference. Abandoned requests count with their
    age, a lower bound.
    """
    planned = case.observed.window.planned_ns
    if not case.observed.open_loop or not planned:
        return None
    records = case.observed.records
    due, latency = records.int("due"), (records.int("done") - records.int("sent")) / NS
    early = latency[(due >= planned / 4) & (due < planned / 2)]
    late = latency[due >= 3 * planned / 4]
    if min(len(early), len(late)) < LEAST_LOOKS:
        return None
    before, after = float(np.median(early)), float(np.median(late))
    error = float(np.hypot(_median_error(early), _median_error(late)))
    slope = (after - before) / (planned / NS / 2)
    if after - before < 3 * error or 1 / (1 + max(slope, 0.0)) >= ANSWERED_SHARE:
        return None
    return f"{_completed_of_scheduled(case)}, latency grew from {duration_text(before)} to {duration_text(after)}"


def _median_error(values: Floats) -> float:
    """Standard error of a median: sqrt(pi/2) sigma / sqrt(n), sigma as 1.4826 times the median deviation."""
    deviation = float(np.median(np.abs(values - np.median(values))))
    return 1.2533 * 1.4826 * deviation / math.sqrt(len(values))


def _refusals(case: _Case) -> str | None:
    sent = case.summary.ledger.sent
    refused = sum(row.count for row in case.summary.errors if any(word in row.key for word in REFUSALS))
    if not sent or refused / sent <= 1 - ANSWERED_SHARE:
        return None
    return f"{refused:,} of {sent:,} requests were refused ({case.summary.errors[0].key})"


def _completed_of_scheduled(case: _Case) -> str:
    rates = case.summary.rates
    return f"{rates.completed:.4g}/s completed of {rates.scheduled or rates.sent:.4g}/s"


_CHECKS = (
    _schedule_lag,
    _loop_blocked,
    _payload_building,
    _payload_failed,
    _worker_cpu,
    _connection_pool,
    _descriptors,
    _ports,
    _local_network,
    _hidden_retries,
)
