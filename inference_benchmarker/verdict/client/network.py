"""The findings on what lies between workers and network: pools, descriptors, ports, this host's refusals. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.plan.plan import DEFAULT_MAX_IN_FLIGHT
from inference_benchmarker.verdict.client.evidence import most_in_flight
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import percent_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.facts.client_use import Connections
    from inference_benchmarker.verdict.client.evidence import Evidence, Sender

CONNECTION_POOL = "connection_pool"
LOCK_WAIT = "lock_wait"
DISCARDED_SHARE = 0.01
WAITING_SHARE = 0.05
ASIDE_SHARE = 0.2  # a backlog of the endpoint's own is made of requests that wait for the network
REOPENED_SHARE = 0.5
LEAST_LOOKS = 20
NEAR = 0.9


def network_findings(evidence: Evidence) -> Iterator[Finding]:
    """The findings on what client libraries and the host's kernel did beneath ``invoke``."""
    for check in (
        _connection_pool,
        _lock_wait,
        _connections_opened,
        _descriptors,
        _ports,
        _local_network,
        _hidden_retries,
    ):
        yield from check(evidence)


def clear_until_ns(evidence: Evidence) -> int | None:
    """Until when no request queued in this client, for a connection or a lock; None where hardly any did at all.

    From then on latency is not the endpoint's.
    """
    if not (_waits_for_pool(evidence) or _waits_for_lock(evidence)):
        return None
    used = [worker.connections for worker in evidence.workers]
    seen = [connections.clear_until_s or 0.0 for connections in used if connections.waiting or connections.locked]
    return round(min(seen) * NS)


def as_consequence(evidence: Evidence, finding: Finding) -> Finding:
    """The finding where the endpoint fell behind first: then more connections would change nothing."""
    if finding.code == LOCK_WAIT:
        return replace(
            finding, advice="A consequence: the endpoint fell behind before any request waited for a lock or a thread."
        )
    if finding.code != CONNECTION_POOL or not _waits_for_pool(evidence):
        return finding
    return replace(
        finding,
        advice="A consequence: the endpoint fell behind before the pool was full; with more connections, more "
        "requests would wait at the endpoint.",
    )


def seen_aside(evidence: Evidence) -> str:
    """The words for how many requests in flight waited for code of the user's; empty where few did.

    An event, a queue or a sleep does not say whether the endpoint has the request.
    """
    share = _share_of_looks(evidence, lambda c: c.aside)
    if share <= ASIDE_SHARE:
        return ""
    return (
        f"{percent_text(share, ASIDE_SHARE)} of the requests in flight waited for an event, a queue, a sleep or a "
        "process within invoke, not for the network"
    )


def _waits_for_pool(evidence: Evidence) -> bool:
    return _waiting_share(evidence) > WAITING_SHARE


def _waits_for_lock(evidence: Evidence) -> bool:
    return _locked_share(evidence) > WAITING_SHARE


def _waiting_share(evidence: Evidence) -> float:
    return _share_of_looks(evidence, lambda c: c.waiting)


def _locked_share(evidence: Evidence) -> float:
    return _share_of_looks(evidence, lambda c: c.locked)


def _share_of_looks(evidence: Evidence, count: Callable[[Connections], int]) -> float:
    looked_at = evidence.total(lambda c: c.looked_at)
    return evidence.total(count) / looked_at if looked_at >= LEAST_LOOKS else 0.0


def _connection_pool(evidence: Evidence) -> Iterator[Finding]:
    sent = evidence.summary.ledger.sent
    discarded, opened = evidence.total(lambda c: c.discarded), evidence.total(lambda c: c.opened)
    if _waits_for_pool(evidence):
        share = percent_text(_waiting_share(evidence))
        measured = f"{share} of the requests in flight waited for their pool's connections"
        advice = _pool_advice(evidence, "Latency includes that wait")
        yield Finding("connection_pool", "warning", measured, percent_text(WAITING_SHARE), advice)
    elif sent and discarded / sent > DISCARDED_SHARE:
        yield Finding(
            "connection_pool",
            "warning",
            f"{discarded:,} connections discarded by a full pool, {opened:,} opened for {sent:,} requests",
            f"{percent_text(DISCARDED_SHARE)} of requests",
            _pool_advice(evidence, "Latency includes a new connection for each further request"),
        )


def _pool_advice(evidence: Evidence, effect: str) -> str:
    size = most_in_flight(evidence.facts)
    return (
        f"{effect}: the client's pool must hold all requests in flight of a worker, here up to {size} (boto3: "
        f"Config(max_pool_connections={size}), requests: HTTPAdapter(pool_maxsize), geventhttpclient: concurrency)."
    )


def _lock_wait(evidence: Evidence) -> Iterator[Finding]:
    if _waits_for_lock(evidence):
        yield Finding(
            "lock_wait",
            "warning",
            f"{percent_text(_locked_share(evidence), WAITING_SHARE)} of the requests in flight waited for a lock or"
            " for a thread of an executor",
            percent_text(WAITING_SHARE),
            "Latency includes that wait, and the endpoint receives only the requests that are let through: do not hold "
            "a lock in invoke during a request, nor give requests to an executor of fewer threads (max_workers).",
        )


def _connections_opened(evidence: Evidence) -> Iterator[Finding]:
    """Beyond one for each request in flight at a time, and for each that failed, connections are there to be reused."""
    sent, opened = evidence.summary.ledger.sent, evidence.total(lambda c: c.opened)
    beyond = opened - evidence.summary.ledger.failed - REOPENED_SHARE * sent
    if beyond <= 0 or evidence.total(lambda c: c.discarded):
        return
    if beyond > evidence.facts.plan.workers * most_in_flight(evidence.facts):
        yield Finding(
            "connections_opened",
            "warning",
            f"{opened:,} connections opened for {sent:,} requests",
            f"{percent_text(REOPENED_SHARE)} of requests",
            "Latency includes opening them: keep them open in invoke (a session, or a pool created in "
            "invoke_factory), unless the endpoint closes them.",
        )


def _hidden_retries(evidence: Evidence) -> Iterator[Finding]:
    retries, sent = evidence.total(lambda c: c.retries), evidence.summary.ledger.sent
    if retries:
        yield Finding(
            "hidden_retries",
            "warning",
            f"{retries:,} retries by the client library in {sent:,} requests",
            "0",
            "Failed attempts and the pauses after them count as latency instead of errors: turn retries off (boto3: "
            'Config(retries={"mode": "standard", "total_max_attempts": 1}), requests: max_retries=0).',
        )


def _descriptors(evidence: Evidence) -> Iterator[Finding]:
    limit = max((worker.descriptor_limit for worker in evidence.workers), default=0)
    opened = [worker.descriptors for worker in evidence.workers]
    peak = max(opened, default=0)
    advice = "Use more --workers, or raise the limit (`benchmark client limits` explains how)."
    failed = evidence.refused("EMFILE", "ENFILE")
    cap = sum(evidence.facts.caps)
    capped = evidence.facts.plan.max_in_flight is None and 0 < cap < DEFAULT_MAX_IN_FLIGHT
    if failed:
        measured = f"{failed:,} requests failed because no file descriptor was free"
        severity = evidence.of_failed_here(failed)
    elif capped and evidence.summary.ledger.dropped:
        measured, severity = f"file descriptors allowed {cap:,} requests in flight, so arrivals were dropped", "warning"
    elif limit and peak > NEAR * limit:
        where = evidence.prefix_of(opened.index(peak))
        measured, severity = f"{where}a worker had {peak:,} file descriptors open", "warning"
    else:
        return
    yield Finding("descriptors", severity, measured, f"{limit:,} open files", advice)


def _ports(evidence: Evidence) -> Iterator[Finding]:
    for sender in evidence.senders:
        yield from _ports_of(evidence, sender)


def _ports_of(evidence: Evidence, sender: Sender) -> Iterator[Finding]:
    host = sender.use
    ports = None if host is None else host.ephemeral_ports
    failed, opened = sender.refused("EADDRNOTAVAIL", "EADDRINUSE"), sender.total(_opened)
    limit = "0" if ports is None else f"{ports:,} ports"
    advice = "Let the client keep its connections open (a session, a pool): each closed one holds a port for 60 s."
    if failed:
        measured = f"{sender.prefix}{failed:,} requests failed because no local port was free"
        yield Finding("ports", evidence.of_failed_here(failed), measured, limit, advice)
    elif ports and host is not None and (host.time_wait or 0) > NEAR * ports and opened > ports / 2:
        measured = f"{sender.prefix}{host.time_wait:,} closed connections hold a local port"
        yield Finding("ports", "warning", measured, limit, advice)


def _opened(connections: Connections) -> int:
    """The number of the host's ports that this wave itself may hold."""
    return connections.opened


def _local_network(evidence: Evidence) -> Iterator[Finding]:
    names = ("ENETUNREACH", "ENETDOWN", "ENOBUFS", "EPERM", "EACCES")
    for sender in evidence.senders:
        if failed := sender.refused(*names):
            seen = ", ".join(name for name in names if sender.refused(name))
            yield Finding(
                "local_network",
                evidence.of_failed_here(failed),
                f"{failed:,} requests were refused by {sender.described} itself ({seen})",
                "0",
                f"They never reached the endpoint: check {sender.described}'s routes, firewall and network buffers.",
            )
