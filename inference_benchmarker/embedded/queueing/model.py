"""The queueing model of an inference server: k servers and what waits for them, in integer nanoseconds.

Pure: instants come in as arguments, nothing here reads a clock or waits. Events happen at the instants the model
computes, whenever the caller gets round to asking, so the capacity is exactly k / mean service time, from the instant
on at which ``resize`` made them k.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.queueing.job import Job
from inference_benchmarker.embedded.queueing.pool import Pool
from inference_benchmarker.embedded.queueing.standstills import Standstills
from inference_benchmarker.embedded.queueing.warmth import Warmth
from inference_benchmarker.embedded.queueing.work_clock import WorkClock
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.embedded.queueing.rules import Rules


class BurstCredits:
    """At most ``rules.burst_ns`` of service are saved up, and are there at first; 0: nothing is ever throttled.

    Each server earns ``rules.burst_baseline`` of the time, and each service spends its length. One that begins while
    less is saved up goes at the baseline's speed, and so spends what its server earns meanwhile.
    """

    def __init__(self, rules: Rules) -> None:
        self._most = rules.burst_ns
        self._baseline = rules.burst_baseline
        self._saved = float(rules.burst_ns)
        self._now_ns = 0

    def length(self, service_ns: int, now_ns: int, servers: int) -> int:
        """The length of a service of ``service_ns`` that begins now on one of so many servers."""
        if not self._most:
            return service_ns
        earned = (now_ns - self._now_ns) * self._baseline * servers
        self._now_ns = now_ns
        self._saved = min(self._most, self._saved + earned)
        throttled = self._saved < service_ns
        self._saved -= service_ns
        return round(service_ns / self._baseline) if throttled else service_ns


class QueueModel:
    """k servers and their queue. Instants given to one model must never go backwards.

    ``next_service`` gives each arrival's service time in ns (drawn for rejected ones too, so that the i-th
    arrival's is the same under any limit).
    """

    def __init__(self, rules: Rules, next_service: Callable[[], int]) -> None:
        self.rules = rules
        self._next_service = next_service
        self._limit = math.inf if rules.queue_limit is None else rules.queue_limit
        self._shares = rules.discipline == "ps"
        self._clock = WorkClock()
        self._pool = Pool(rules)
        self._warmth = Warmth(rules)
        self._credits = BurstCredits(rules)
        self._standstills = Standstills(rules.pause_every_ns, rules.pause_ns)
        self._waiting: deque[Job] = deque()
        self._take = self._waiting.pop if rules.discipline == "lifo" else self._waiting.popleft
        # Everything in service: a heap of (when its next piece is ready on the work clock, number, job).
        self._serving: list[tuple[int, int, Job]] = []
        # Jobs with a piece that is ready and was not asked for yet, once for each piece.
        self._ready: list[Job] = []
        # Services under way: requests, or batches of them.
        self._services = 0
        self._begun = 0
        self._is_open = False
        self._present = 0
        self._present_ns = 0
        self._peak = 0

    @property
    def servers(self) -> int:
        """The servers that there were at the last instant that the model got."""
        return self._pool.servers

    def offer(self, now_ns: int, pieces: int = 1, part: float = 1.0) -> Job | None:
        """An arrival, whose answer has so many pieces: its job, or None where the queue is full.

        Its service takes ``part`` of what is drawn for it.
        """
        service = self._next_service()
        self._advance(now_ns)
        if not self._is_open:
            self._is_open = True
            self._standstills.open(now_ns)
        if not self._present:
            self._warmth.arrive(now_ns, self.servers)
        if self._full():
            return None
        job = Job(now_ns, service if part == 1 else round(service * part), pieces)
        self._waiting.append(job)
        self._present += 1
        self._peak = max(self._peak, self._present)
        self._happen()
        self._pool.pile_up(now_ns, self._queued())
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
        self._standstills.stall(now_ns, round(seconds * NS))

    def resize(self, now_ns: int, servers: int) -> None:
        """From now on there are that many servers, and those that were added.

        New ones are cold. Those that never worked end first; one that is at work ends with what it serves, and with
        ``ps`` the others take that over. As many times as many may be there when requests pile up.
        """
        self._advance(now_ns)
        self._warmth.resize(self._pool.resize(servers, self._services))
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

    def present_ns(self, now_ns: int) -> int:
        """The integral of ``present`` up to now."""
        self._advance(now_ns)
        return self._present_ns

    def busy_ns(self, now_ns: int) -> int:
        """The integral of ``busy`` up to now; its growth / that of ``server_ns`` is the utilisation."""
        self._advance(now_ns)
        return self._clock.busy_ns

    def server_ns(self, now_ns: int) -> int:
        """The integral of how many servers there may be; one that ends with what it serves counts until then."""
        self._advance(now_ns)
        return self._clock.server_ns

    def _full(self) -> bool:
        must_wait = self._services >= self.servers or self._stands()
        return must_wait and self._queued() >= self._limit

    def _stands(self) -> bool:
        return self._clock.now_ns < self._standstills.until_ns

    def _queued(self) -> int:
        return len(self._waiting) + self._services - self._busy()

    def _busy(self) -> int:
        return min(self._services, self._pool.servers) if self._shares else self._services

    def _is_free(self) -> bool:
        """Tells whether a service may begin."""
        return self._shares or self._services < self._pool.servers

    def _advance(self, now_ns: int) -> None:
        """Everything that happens up to now, at its own instant."""
        while (at := self._next()) <= now_ns:
            self._pass_time(at)
            self._happen()
            if not self._present:
                self._standstills.skip(now_ns)
        self._pass_time(now_ns)

    def _pass_time(self, at: int) -> None:
        if at > self._clock.now_ns:
            self._present_ns += (at - self._clock.now_ns) * self._present
            self._clock.pass_time(at, self._services, self._busy(), self._pool.room, stands=self._stands())

    def _next(self) -> int:
        """The next instant at which something happens while nobody arrives."""
        clock, standstills = self._clock, self._standstills
        at = min(standstills.due_ns, self._pool.due_ns)
        if clock.now_ns < standstills.until_ns:
            return at
        if self._serving:
            work = self._serving[0][0] - clock.work_ns
            at = min(at, clock.now_ns + clock.time_for(work, self._services, self._busy()))
        if self._waiting and self._is_free():
            at = min(at, self._waiting[0].arrival_ns + self.rules.batch_delay_ns)
        return at

    def _happen(self) -> None:
        clock, standstills, pool = self._clock, self._standstills, self._pool
        if standstills.due_ns <= clock.now_ns:
            standstills.happen(clock.now_ns)
        if pool.due_ns <= clock.now_ns and (more := pool.happen(clock.now_ns, self._services)):
            self._warmth.resize(more)
        if clock.now_ns < standstills.until_ns:
            return
        self._take_up()
        while self._serving and self._serving[0][0] <= clock.work_ns:
            self._give_piece()

    def _take_up(self) -> None:
        while self._waiting and self._is_free() and self._may_begin():
            self._begin([self._take() for _ in range(min(self.rules.batch_size, len(self._waiting)))])

    def _may_begin(self) -> bool:
        """Tells whether a batch is full, or has waited for long enough."""
        full = len(self._waiting) >= self.rules.batch_size
        return full or self._waiting[0].arrival_ns + self.rules.batch_delay_ns <= self._clock.now_ns

    def _begin(self, batch: list[Job]) -> None:
        clock = self._clock
        service = self._warmth.length(max(job.service_ns for job in batch), clock.now_ns, len(batch))
        service = self._credits.length(service, clock.now_ns, self.servers)
        self._services += 1
        clock.regroup()
        for job in batch:
            job.start_ns = clock.now_ns
            job.service_ns = service
            job.ends_at_work = clock.work_ns + service
            heappush(self._serving, (job.due_at_work, self._begun, job))
            self._begun += 1
        batch[-1].frees = True

    def _give_piece(self) -> None:
        _, number, job = heappop(self._serving)
        self._ready.append(job)
        job.left -= 1
        if job.left:
            heappush(self._serving, (job.due_at_work, number, job))
            return
        job.finish_ns = self._clock.now_ns
        self._present -= 1
        if not self._present:
            self._warmth.empty(job.finish_ns)
        if job.frees:
            self._services -= 1
            self._pool.ended(job.finish_ns, self._services)
            self._clock.regroup()
            self._take_up()
