"""A wave before the court: what its checks ask of it, and the words that several of them use. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.ordered import ReorderBuffer, watermarks
from inference_benchmarker.verdict.advice import less_load
from inference_benchmarker.verdict.client.counted import most_at_a_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.facts.client_use import Connections, WorkerUse
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Severity

FAILED_HERE_SHARE = 0.01  # as the share of a plan that may be left unsent
FULL_HOST_SHARE = 0.95  # of all cores, in one second at the least
BUSY_HOST_SHARE = 0.5  # on average
OWN_SHARE = 0.5


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
    def cores(self) -> int | None:
        """The number of cores this tool may use; None where no sample tells."""
        return None if self.facts.host is None else self.facts.host.cores

    def total(self, count: Callable[[Connections], int]) -> int:
        """A count of client libraries' doings, over all workers."""
        return sum(count(worker.connections) for worker in self.workers)

    def refused(self, *names: str) -> int:
        """Requests that failed because this host refused something, by errno."""
        return self.total(lambda connections: sum(connections.refused.get(name, 0) for name in names))

    def of_failed_here(self, count: int) -> Severity:
        """A request that failed before it left was not offered: more than 1% of them, and the plan was not."""
        return "invalid" if count > FAILED_HERE_SHARE * self.summary.ledger.scheduled else "warning"

    def more_workers(self) -> str:
        """The advice for one thread that has too much to do."""
        if self.cores is not None and self.facts.plan.workers >= self.cores:
            taken = "the only core has a worker" if self.cores == 1 else f"all {self.cores} cores have a worker"
            return (
                f"use a bigger client, several of them, or {less_load(self.facts.plan.load)}, since {taken} "
                "(`benchmark client rps-saturation` tells what this client can send)"
            )
        spread = "" if self.cores is None else f" (this host has {self.cores} cores)"
        return f"use more --workers{spread}; `benchmark client worker-saturation` tells what one can send"


def workers_cpu_share(facts: WaveFacts) -> float | None:
    """The workers' share of all cores together; None where it is not known."""
    shares = [use.cpu_share for use in facts.workers if use.cpu_share is not None]
    return sum(shares) / facts.host.cores if facts.host is not None and shares else None


def others_took_cores(facts: WaveFacts) -> bool:
    """Tells whether the host was full for a second or more, and busy with less than half of it the workers' doing.

    These others may be the primary and an endpoint on this host.
    """
    host, own = facts.host, workers_cpu_share(facts)
    if host is None or own is None or host.cpu_share_max <= FULL_HOST_SHARE:
        return False
    return host.cpu_share_mean > BUSY_HOST_SHARE and own < OWN_SHARE * host.cpu_share_mean


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
