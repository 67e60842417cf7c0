"""The queueing model of an inference server: k servers before one FIFO queue, in integer nanoseconds.

Pure: instants come in as arguments, nothing here reads a clock or waits. A server is freed at the finish the
model computed, whenever the caller gets round to answering, so the capacity is exactly k / mean service time.
"""

from __future__ import annotations

import math
import random
from collections import deque
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NS = 1_000_000_000
SERVICE_KINDS = ("none", "fixed", "exponential", "lognormal")


def service_times(kind: str, mean_s: float, cv: float, seed: int) -> Callable[[], int]:
    """A reproducible stream of service times in ns: each call draws the next.

    ``cv`` (standard deviation / mean) only shapes ``lognormal``, whose parameters follow from its moments:
    sigma^2 = ln(1 + cv^2), mu = ln(mean) - sigma^2 / 2.
    """
    draws = random.Random(f"service:{seed}")
    if kind == "none":
        return lambda: 0
    if kind == "fixed":
        fixed = round(mean_s * NS)
        return lambda: fixed
    if kind == "exponential":
        return lambda: round(draws.expovariate(1 / mean_s) * NS)
    if kind == "lognormal":
        variance = math.log1p(cv * cv)
        mu, sigma = math.log(mean_s) - variance / 2, math.sqrt(variance)
        return lambda: round(draws.lognormvariate(mu, sigma) * NS)
    raise ValueError(f"service {kind!r} is none of {', '.join(SERVICE_KINDS)}")


class Job:
    """One accepted request: in service from ``start_ns`` up to ``finish_ns``. A stall moves both."""

    __slots__ = ("arrival_ns", "finish_ns", "service_ns", "start_ns")

    def __init__(self, arrival_ns: int, start_ns: int, service_ns: int) -> None:
        self.arrival_ns = arrival_ns
        self.start_ns = start_ns
        self.service_ns = service_ns
        self.finish_ns = start_ns + service_ns


class QueueModel:
    """k servers and their queue. Instants given to one model must never go backwards.

    ``next_service`` gives each arrival's service time in ns (drawn for rejected ones too, so that the i-th
    arrival's is the same under any limit). The first request of each server takes ``cold_start_ns`` longer; a
    server that never worked is preferred to one that has. ``queue_limit``: how many may wait; None: no limit.
    """

    def __init__(
        self,
        servers: int,
        next_service: Callable[[], int],
        queue_limit: int | None = None,
        cold_start_ns: int = 0,
    ) -> None:
        self.servers = servers
        self._next_service = next_service
        self._limit = math.inf if queue_limit is None else queue_limit
        self._cold_start_ns = cold_start_ns
        # A heap: when each server is done with all that is assigned to it; -1 as long as it never worked.
        self._free = [-1] * servers
        self._waiting: deque[Job] = deque()
        # Everything accepted and unfinished, waiting or in service: a heap of (finish, number, job).
        self._present: list[tuple[int, int, Job]] = []
        self._peak = 0
        self._accepted = 0
        self._finished_ns = 0
        self._stalled_until = 0

    def offer(self, now_ns: int) -> Job | None:
        """An arrival: its job with start and finish known, or None where the queue is full."""
        service = self._next_service()
        self._advance(now_ns)
        start = max(now_ns, self._free[0])
        if start > now_ns and len(self._waiting) >= self._limit:
            return None
        if self._accepted < self.servers:
            service += self._cold_start_ns
        job = Job(now_ns, start, service)
        heapreplace(self._free, job.finish_ns)
        heappush(self._present, (job.finish_ns, self._accepted, job))
        self._accepted += 1
        self._peak = max(self._peak, len(self._present))
        if start > now_ns:
            self._waiting.append(job)
        return job

    def stall(self, now_ns: int, seconds: float) -> None:
        """Every server stands still from now for that long: what is present finishes that much later.

        Stalls that overlap stand still together: the second adds only what goes beyond the first's end.
        """
        self._advance(now_ns)
        resumes = max(now_ns, self._stalled_until)
        shift = now_ns + round(seconds * NS) - resumes
        if shift <= 0:
            return
        self._stalled_until = resumes + shift
        self._free = [max(free, resumes) + shift for free in self._free]
        heapify(self._free)
        for _, _, job in self._present:
            job.finish_ns += shift
            if job.start_ns > now_ns:
                job.start_ns += shift
        self._present = [(finish + shift, number, job) for finish, number, job in self._present]

    def busy(self, now_ns: int) -> int:
        """Servers with a request in service; one that stands still with a request counts."""
        self._advance(now_ns)
        return len(self._present) - len(self._waiting)

    def queue_length(self, now_ns: int) -> int:
        """Accepted requests whose service has not begun."""
        self._advance(now_ns)
        return len(self._waiting)

    def take_peak(self, now_ns: int) -> int:
        """The most requests that were present at any time since this was last asked, waiting or in service."""
        self._advance(now_ns)
        peak, self._peak = self._peak, len(self._present)
        return peak

    def busy_ns(self, now_ns: int) -> int:
        """The integral of ``busy`` up to now; its growth / (servers * window) is the utilisation."""
        self._advance(now_ns)
        begun = (now_ns - job.start_ns for _, _, job in self._present if job.start_ns <= now_ns)
        return self._finished_ns + sum(begun)

    def _advance(self, now_ns: int) -> None:
        """FIFO makes starts non-decreasing, so the head of ``_waiting`` always starts first."""
        waiting, present = self._waiting, self._present
        while waiting and waiting[0].start_ns <= now_ns:
            waiting.popleft()
        while present and present[0][0] <= now_ns:
            _, _, job = heappop(present)
            self._finished_ns += job.finish_ns - job.start_ns
