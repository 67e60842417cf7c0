"""The evidence about the client: what the checks of a wave ask of it, and the words that several of them use. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.facts.hosts import host_of_worker
from inference_benchmarker.records.ordered import ReorderBuffer, watermarks
from inference_benchmarker.verdict.advice import less_load
from inference_benchmarker.verdict.client.counted import most_at_a_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.facts.client_use import Connections, HostUse, WorkerUse
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Severity

FAILED_HERE_SHARE = 0.01  # as the share of a plan that may be left unsent
FULL_HOST_SHARE = 0.95  # of all cores, in one second at the least
BUSY_HOST_SHARE = 0.5  # on average
OWN_SHARE = 0.5


@dataclass(frozen=True)
class Sender:
    """A host with the workers on it. ``name``: None where this host alone sends, so that it needs no name."""

    name: str | None
    use: HostUse | None
    workers: tuple[WorkerUse, ...]

    @property
    def prefix(self) -> str:
        """The words before what was measured there."""
        return "" if self.name is None else f"{self.name}: "

    @property
    def described(self) -> str:
        """The host in a sentence."""
        return "this host" if self.name is None else self.name

    def total(self, count: Callable[[Connections], int]) -> int:
        """A count of client libraries' doings, over its workers."""
        return sum(count(worker.connections) for worker in self.workers)

    def refused(self, *names: str) -> int:
        """Requests that failed because it refused something, by errno."""
        return self.total(lambda connections: sum(connections.refused.get(name, 0) for name in names))

    @property
    def workers_cpu_share(self) -> float | None:
        """The workers' share of all its cores together; None where it is not known."""
        shares = [use.cpu_share for use in self.workers if use.cpu_share is not None]
        return sum(shares) / self.use.cores if self.use is not None and shares else None

    @property
    def others_took_cores(self) -> bool:
        """Tells whether the host was full for a second or more, and busy with less than half of it the workers' doing.

        These others may be the primary and an endpoint on this host.
        """
        use, own = self.use, self.workers_cpu_share
        if use is None or own is None or use.cpu_share_max <= FULL_HOST_SHARE:
            return False
        return use.cpu_share_mean > BUSY_HOST_SHARE and own < OWN_SHARE * use.cpu_share_mean


def senders_of(facts: WaveFacts) -> tuple[Sender, ...]:
    """The hosts that sent a wave."""
    if not facts.hosts:
        return (Sender(None, facts.host, facts.workers),)
    return tuple(
        Sender(host.name, host.use, tuple(facts.workers[number] for number in host.workers if facts.workers))
        for host in facts.hosts
    )


@dataclass(frozen=True)
class Evidence:
    """A finished wave and its numbers."""

    facts: WaveFacts
    summary: Summary

    @property
    def workers(self) -> tuple[WorkerUse, ...]:
        """Each worker's use."""
        return self.facts.workers

    @property
    def senders(self) -> tuple[Sender, ...]:
        """Each host with its workers."""
        return senders_of(self.facts)

    def prefix_of(self, worker: int) -> str:
        """The words before what was measured of a worker, by its number: its host."""
        name = host_of_worker(self.facts.hosts, worker)
        return "" if name is None else f"{name}: "

    def named(self, worker: int) -> str:
        """A worker with the host before it: ``load2: worker 3``."""
        return f"{self.prefix_of(worker)}worker {worker}"

    def sender_of(self, worker: WorkerUse) -> Sender:
        """The host that a worker runs on."""
        return next(sender for sender in self.senders if any(each is worker for each in sender.workers))

    @property
    def cores(self) -> int | None:
        """The number of cores this tool may use, of all hosts that send; None where it is unknown."""
        known = [sender.use.cores for sender in self.senders if sender.use is not None]
        return sum(known) if len(known) == len(self.senders) else None

    def total(self, count: Callable[[Connections], int]) -> int:
        """A count of client libraries' doings, over all workers."""
        return sum(sender.total(count) for sender in self.senders)

    def refused(self, *names: str) -> int:
        """Requests that failed because a host that sends refused something, by errno."""
        return sum(sender.refused(*names) for sender in self.senders)

    def of_failed_here(self, count: int) -> Severity:
        """A request that failed before it left was not offered: more than 1% of them, and the plan was not."""
        return "invalid" if count > FAILED_HERE_SHARE * self.summary.ledger.scheduled else "warning"

    def more_workers(self) -> str:
        """The advice for one thread that has too much to do."""
        if self.cores is not None and self.facts.plan.workers >= self.cores:
            taken = "the only core has a worker" if self.cores == 1 else f"each of the {self.cores} cores has a worker"
            if self.facts.hosts:
                return f"name more --hosts, or {less_load(self.facts.plan.load)} ({taken})"
            return (
                f"use a larger client, several of them, or {less_load(self.facts.plan.load)} ({taken} already; "
                "`benchmark client rps-saturation` measures what this client can send)"
            )
        have = "the hosts have" if self.facts.hosts else "this host has"
        spread = "" if self.cores is None else f" ({have} {self.cores} cores)"
        return f"use more --workers{spread}; `benchmark client worker-saturation` measures what one can send"


def most_in_flight(facts: WaveFacts) -> int:
    """The most requests that one worker had in flight at a time; where they were counted, at least so many."""
    if facts.counts is not None:
        return -(-most_at_a_time(facts.counts) // facts.plan.workers)
    workers = [_InFlight() for _ in range(facts.plan.workers)]
    marks = watermarks(facts.records, "sent", "done")
    for part, mark in zip(facts.records.parts("worker", "sent", "done"), marks, strict=True):
        for number, worker in enumerate(workers):
            mine = part.int("worker") == number
            worker.add(part.int("sent")[mine], part.int("done")[mine], mark)
    return max((worker.most for worker in workers), default=0)


class _InFlight:
    """The requests of one worker, as parts of them come. ``most``: at a time."""

    def __init__(self) -> None:
        self._events = ReorderBuffer()
        self._now = self.most = 0

    def add(self, sent: Int64, done: Int64, watermark: int | None) -> None:
        """Take in some more, before those that are sent and done from the watermark on."""
        events = np.concatenate([done << 1, sent << 1 | 1])  # of the same instant, the end of a request is the first
        events = self._events.push(events, None if watermark is None else watermark << 1)
        if len(events):
            running = self._now + np.cumsum(np.where(events & 1, 1, -1))
            self._now, self.most = int(running[-1]), max(self.most, int(running.max()))
