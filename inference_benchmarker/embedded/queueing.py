"""The queueing model of an inference server: k servers and what waits for them, in integer nanoseconds.

Pure: instants come in as arguments, nothing here reads a clock or waits. Events happen at the instants the model
computes, whenever the caller gets round to asking, so the capacity is exactly k / mean service time, from the instant
on at which ``resize`` made them k.

The model keeps a work clock beside the time: how much service each request in service gets. It runs with the time,
stands still in a stall or a pause, and runs at k / n where n > k requests share k servers.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.embedded.rules import Rules

# After every instant that a clock can show.
_NEVER = 1 << 63


class Job:
    """One accepted request: in service from ``start_ns`` up to ``finish_ns``, each None until it is reached.

    Its answer has ``pieces``, ``left`` of them still to come: piece j of n when (j + 1) / n of its service is done.
    """

    __slots__ = ("arrival_ns", "ends_at_work", "finish_ns", "frees", "left", "pieces", "service_ns", "start_ns")

    def __init__(self, arrival_ns: int, service_ns: int, pieces: int) -> None:
        self.arrival_ns = arrival_ns
        self.service_ns = service_ns
        self.pieces = self.left = pieces
        self.start_ns: int | None = None
        self.finish_ns: int | None = None
        # On the work clock.
        self.ends_at_work = 0
        # Whether its end frees a server: the end of a batch's last request does.
        self.frees = False

    @property
    def due_at_work(self) -> int:
        """When its next piece is ready, on the work clock."""
        return self.ends_at_work - self.service_ns * (self.left - 1) // self.pieces


class QueueModel:
    """k servers and their queue. Instants given to one model must never go backwards.

    ``next_service`` gives each arrival's service time in ns (drawn for rejected ones too, so that the i-th
    arrival's is the same under any limit).
    """

    def __init__(self, rules: Rules, next_service: Callable[[], int]) -> None:
        self.rules = rules
        self.servers = rules.servers
        self._next_service = next_service
        self._limit = math.inf if rules.queue_limit is None else rules.queue_limit
        self._shares = rules.discipline == "ps"
        self._now = 0
        self._work = 0
        self._stalled_until = 0
        self._pause_at = _NEVER
        self._first_ns: int | None = None
        self._waiting: deque[Job] = deque()
        self._take = self._waiting.pop if rules.discipline == "lifo" else self._waiting.popleft
        # Everything in service: a heap of (when its next piece is ready on the work clock, number, job).
        self._serving: list[tuple[int, int, Job]] = []
        # Jobs with a piece that is ready and was not asked for yet, once for each piece.
        self._ready: list[Job] = []
        # Services under way: requests, or batches of them.
        self._services = 0
        # What the work clock has gone beyond whole ns since their number last changed, in parts of that number.
        self._work_rest = 0
        self._begun = 0
        self._cold = rules.servers
        self._present = 0
        self._peak = 0
        self._busy_ns = 0
        self._server_ns = 0

    def offer(self, now_ns: int, pieces: int = 1) -> Job | None:
        """An arrival, whose answer has so many pieces: its job, or None where the queue is full."""
        service = self._next_service()
        self._advance(now_ns)
        if self._first_ns is None:
            self._open(now_ns)
        if self._full():
            return None
        job = Job(now_ns, service, pieces)
        self._waiting.append(job)
        self._present += 1
        self._peak = max(self._peak, self._present)
        self._happen()
        return job

    def take_ready(self, now_ns: int) -> Sequence[Job]:
        """The jobs of which a piece became ready since this was last asked, once for each piece, in order."""
        self._advance(now_ns)
        ready, self._ready = self._ready, []
        return ready

    def next_ns(self) -> int | None:
        """The next instant at which a piece may become ready while nobody arrives; None: there is none."""
        return self._next() if self._present else None

    def stall(self, now_ns: int, seconds: float) -> None:
        """Every server stands still from now for that long.

        Stalls that overlap stand still together: the second adds only what goes beyond the first's end.
        """
        self._advance(now_ns)
        self._stand_still(round(seconds * NS))

    def resize(self, now_ns: int, servers: int) -> None:
        """From now on there are that many servers.

        New ones are cold. Those that never worked end first; one that is at work ends with what it serves, and with
        ``ps`` the others take that over.
        """
        self._advance(now_ns)
        self._cold = max(0, self._cold + servers - self.servers)
        self.servers = servers
        self._happen()

    def busy(self, now_ns: int) -> int:
        """Servers with a request in service; one that stands still with a request counts."""
        self._advance(now_ns)
        return self._busy()

    def queue_length(self, now_ns: int) -> int:
        """Accepted requests whose service has not begun; with ``ps``, those beyond the number of servers."""
        self._advance(now_ns)
        return self._queued()

    def present(self, now_ns: int) -> int:
        """Accepted requests that are not finished."""
        self._advance(now_ns)
        return self._present

    def take_peak(self, now_ns: int) -> int:
        """The most requests that were present at any time since this was last asked, waiting or in service."""
        self._advance(now_ns)
        peak, self._peak = self._peak, self._present
        return peak

    def busy_ns(self, now_ns: int) -> int:
        """The integral of ``busy`` up to now; its growth / that of ``server_ns`` is the utilisation."""
        self._advance(now_ns)
        return self._busy_ns

    def server_ns(self, now_ns: int) -> int:
        """The integral of the number of servers up to now; one that ends with what it serves counts until then."""
        self._advance(now_ns)
        return self._server_ns

    def _open(self, now_ns: int) -> None:
        self._first_ns = now_ns
        if self.rules.pause_every_ns:
            self._pause_at = now_ns + self.rules.pause_every_ns

    def _full(self) -> bool:
        must_wait = self._services >= self.servers or self._now < self._stalled_until
        return must_wait and self._queued() >= self._limit

    def _queued(self) -> int:
        return len(self._waiting) + self._services - self._busy()

    def _busy(self) -> int:
        return min(self._services, self.servers) if self._shares else self._services

    def _is_free(self) -> bool:
        """Tells whether a service may begin."""
        return self._shares or self._services < self.servers

    def _stand_still(self, length_ns: int) -> None:
        self._stalled_until = max(self._stalled_until, self._now + length_ns)

    def _advance(self, now_ns: int) -> None:
        """Everything that happens up to now, at its own instant."""
        while (at := self._next()) <= now_ns:
            self._pass_time(at)
            self._happen()
            self._skip_pauses(now_ns)
        self._pass_time(now_ns)

    def _skip_pauses(self, now_ns: int) -> None:
        """While nobody is there, only the last pause matters: those before it have ended."""
        if self._pause_at < now_ns and not self._present:
            every = self.rules.pause_every_ns
            self._pause_at += (now_ns - self._pause_at) // every * every

    def _next(self) -> int:
        """The next instant at which something happens while nobody arrives."""
        at = self._pause_at
        if self._now < self._stalled_until:
            return min(at, self._stalled_until)
        if self._serving:
            at = min(at, self._now + self._time_for(self._serving[0][0] - self._work))
        if self._waiting and self._is_free():
            at = min(at, self._waiting[0].arrival_ns + self.rules.batch_delay_ns)
        return at

    def _time_for(self, work: int) -> int:
        """The time that each service under way takes to get on by that much."""
        busy, services = self._busy(), self._services
        return work if services == busy else -((self._work_rest - work * services) // busy)

    def _pass_time(self, at: int) -> None:
        """Nothing happens in between."""
        passed = at - self._now
        if passed <= 0:
            return
        busy = self._busy()
        self._busy_ns += passed * busy
        self._server_ns += passed * max(busy, self.servers)
        if self._now >= self._stalled_until:
            self._work += self._work_of(passed)
        self._now = at

    def _work_of(self, passed: int) -> int:
        """The work that each service under way gets done in that time."""
        busy, services = self._busy(), self._services
        if services == busy:
            return passed
        work, self._work_rest = divmod(passed * busy + self._work_rest, services)
        return work

    def _happen(self) -> None:
        if self._now >= self._pause_at:
            self._stand_still(self.rules.pause_ns)
            self._pause_at += self.rules.pause_every_ns
        if self._now < self._stalled_until:
            return
        self._take_up()
        while self._serving and self._serving[0][0] <= self._work:
            self._give_piece()

    def _take_up(self) -> None:
        while self._waiting and self._is_free() and self._may_begin():
            self._begin([self._take() for _ in range(min(self.rules.batch_size, len(self._waiting)))])

    def _may_begin(self) -> bool:
        """Tells whether a batch is full, or has waited for long enough."""
        full = len(self._waiting) >= self.rules.batch_size
        return full or self._waiting[0].arrival_ns + self.rules.batch_delay_ns <= self._now

    def _begin(self, batch: list[Job]) -> None:
        service = self._length(max(job.service_ns for job in batch))
        self._services += 1
        self._work_rest = 0
        for job in batch:
            job.start_ns = self._now
            job.service_ns = service
            job.ends_at_work = self._work + service
            heappush(self._serving, (job.due_at_work, self._begun, job))
            self._begun += 1
        batch[-1].frees = True

    def _length(self, service_ns: int) -> int:
        """The length of a service that begins now."""
        rules = self.rules
        assert self._first_ns is not None
        if self._begun < rules.slow_start_requests or self._now - self._first_ns < rules.slow_start_ns:
            service_ns = round(service_ns * rules.slow_start_factor)
        if self._cold:
            self._cold -= 1
            service_ns += rules.cold_start_ns
        return service_ns

    def _give_piece(self) -> None:
        _, number, job = heappop(self._serving)
        self._ready.append(job)
        job.left -= 1
        if job.left:
            heappush(self._serving, (job.due_at_work, number, job))
            return
        job.finish_ns = self._now
        self._present -= 1
        if job.frees:
            self._services -= 1
            self._work_rest = 0
            self._take_up()
