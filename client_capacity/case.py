"""A wave before the court: what its checks ask of it, and the words that several of them use. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.finding import Severity
    from inference_benchmarker.observed import Observed
    from inference_benchmarker.summary import Summary
    from inference_benchmarker.usage import Connections, WorkerUse

FAILED_HERE_SHARE = 0.01  # as the share of a plan that may be left unsent


@dataclass(frozen=True)
class Case:
    """A finished wave and its numbers."""

    observed: Observed
    summary: Summary

    @property
    def workers(self) -> tuple[WorkerUse, ...]:
        """What each worker used."""
        return self.observed.workers

    @property
    def cores(self) -> int | None:
        """How many cores this tool may use; None where no sample tells."""
        return None if self.observed.host is None else self.observed.host.cores

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
        """What to do about one thread that has too much to do."""
        if self.cores is not None and self.observed.plan.workers >= self.cores:
            return (
                f"All {self.cores} cores have a worker: a bigger client, several of them, or a lower --client-rps "
                "(`benchmark client rps-saturation` tells what this one can send)"
            )
        spread = "" if self.cores is None else f" (this host has {self.cores} cores)"
        return f"use more --workers{spread}; `benchmark client worker-saturation` tells what one can send"


def most_in_flight(observed: Observed) -> int:
    """The most requests that one worker had in flight at a time."""
    records = observed.records
    most = 0
    for worker in range(observed.plan.workers):
        mine = records.int("worker") == worker
        sent, done = np.sort(records.int("sent")[mine]), np.sort(records.int("done")[mine])
        over = np.searchsorted(done, sent, side="right")
        most = max(most, int((np.arange(1, len(sent) + 1) - over).max(initial=0)))
    return most
