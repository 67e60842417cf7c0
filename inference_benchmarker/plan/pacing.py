"""Turns a plan into arrivals: who is due when, and which worker sends it. Pure: no clock, no sleep.

Arrival *i* has a due time, a worker (``i mod W``, or the one that is drawn for it), a payload (``i mod n``) and a
record; nothing else keeps count. Due times are absolute nanoseconds after wave start, so no error accumulates. Warm-up
arrivals have negative indices and negative due times.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from functools import cached_property
from itertools import islice, starmap
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.schedule import NO_END, Schedule
from inference_benchmarker.plan.stripe import OpenStripe, owners, unit_rate
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inference_benchmarker.plan.plan import WavePlan

_CHUNK = 1 << 12


class Arrival(NamedTuple):
    """The right to send one request: its place in the whole wave, and when it is due (ns after wave start)."""

    index: int  # type: ignore[assignment]  # the place in the wave, not tuple.index
    due: int


class TokenBucket:
    """The wave's arrivals, the same for any number of workers.

    Open loop: the schedule fills the bucket; ``arrivals(worker)`` are one worker's stripe in order of due time.
    Closed loop: the bucket starts with C arrivals and gets another for each completion; ``stripe(worker)`` is
    one worker's share of them. ``scattered``: of Poisson arrivals each has a worker that is drawn for it, since the
    workers' hosts have clocks of their own.
    """

    def __init__(
        self,
        load: OpenLoop | ClosedLoop,
        bounds: Bounds,
        *,
        workers: int = 1,
        seed: int = 0,
        warmup_ns: int = 0,
        scattered: bool = False,
    ) -> None:
        self.load = load
        self.workers = workers
        self.seed = seed
        self.warmup_ns = warmup_ns
        self.end_ns = NO_END if bounds.duration_ns is None else bounds.duration_ns
        self.num_requests = bounds.num_requests
        self._schedule = load.schedule if isinstance(load, OpenLoop) else None
        self._drawn = isinstance(load, OpenLoop) and load.arrivals == "poisson"
        self._scattered = scattered and self._drawn

    @classmethod
    def of(cls, plan: WavePlan) -> TokenBucket:
        """The bucket of a plan whose seed is settled."""
        return cls(
            plan.load,
            plan.bounds,
            workers=plan.workers,
            seed=plan.seed or 0,
            warmup_ns=plan.warmup_ns,
            scattered=len(plan.hosts.hosts) > 1,
        )

    def arrivals(self, worker: int) -> Iterator[Arrival]:
        """One worker's open-loop arrivals, warm-up first, in order of due time."""
        return starmap(Arrival, self.open_stripe(worker).arrivals())

    def open_stripe(self, worker: int) -> OpenStripe:
        """One worker's share of an open loop."""
        if not isinstance(self.load, OpenLoop):
            raise TypeError("a closed loop has no schedule: use stripe()")
        return OpenStripe(
            self._open,
            worker,
            self.workers,
            end_ns=self.end_ns,
            num_requests=self.num_requests,
            warmup_ns=self.warmup_ns,
            seed=self.seed if self._drawn else None,
            scattered=self._scattered,
            steered=self.load.is_steered,
        )

    def stripe(self, worker: int) -> ClosedStripe:
        """One worker's share of a closed loop."""
        if not isinstance(self.load, ClosedLoop):
            raise TypeError("an open loop has no stripe: use arrivals()")
        return ClosedStripe(self, worker)

    def count(self, until_ns: int | None = None) -> list[int]:
        """The open-loop arrivals of each worker that are due before ``until_ns`` (default: the plan's end)."""
        total = self.counts([self.end_ns if until_ns is None else until_ns])[0]
        if self._scattered:
            number = Counter(islice(owners(self.seed, self.workers), total))
            return [number[worker] for worker in range(self.workers)]
        return [len(range(worker, total, self.workers)) for worker in range(self.workers)]

    def duration_ns(self, until_ns: int | None = None) -> int | None:
        """The planned duration T: the time bound, or when the arrival after the last one would be due.

        So N arrivals at a constant rate have T = N / rate: no fence-post. None for a closed loop that is
        bounded by a number of requests alone.
        """
        end = self._planned_ns if until_ns is None else self._planned_by(max(0, min(until_ns, self.end_ns)))
        return None if end == NO_END else end

    def surely_over_ns(self, until_ns: int | None = None) -> int | None:
        """An instant by which every arrival has been due, without drawing a Poisson wave to its end.

        When the N-th arrival is due, the area under the rate has the mean N and the standard deviation sqrt(N).
        """
        end = self.end_ns if until_ns is None else min(until_ns, self.end_ns)
        if self._schedule is not None and self.num_requests is not None:
            arrivals = self.num_requests + 10 * math.isqrt(self.num_requests) + 10
            end = min(end, self._schedule.due(arrivals))
        return None if end == NO_END else end

    def draws(self, until_ns: int | None = None) -> float:
        """About how many arrivals must be drawn to count those due by then; 0 where they can be worked out."""
        if self._schedule is None or not self._drawn:
            return 0.0
        due = float(self._schedule.area(self.end_ns if until_ns is None else min(until_ns, self.end_ns)))
        return due if self.num_requests is None else min(due, self.num_requests)

    def most_arrivals(self) -> int | None:
        """A number that the wave's arrivals do not exceed; None where the endpoint's answers decide."""
        most = [] if self.num_requests is None else [self.num_requests]
        if self._schedule is not None and self.end_ns != NO_END:
            most.append(self._at_most(self._schedule.count(self.end_ns)))
        return min(most, default=None)

    def most_with_warmup(self) -> int | None:
        """A number that the arrivals of the warm-up and of the wave do not exceed together; None where none is known.

        In a closed loop, and where the rate may be changed, nobody knows how many the warm-up has.
        """
        if not self.load.is_steered and self._schedule is not None:
            most, warmup = self.most_arrivals(), int(self.warmup_ns * self._schedule.first_rps / NS)
            return most if most is None or not self.warmup_ns else most + self._at_most(warmup)
        return None if self.warmup_ns else self.num_requests

    def _at_most(self, mean: int) -> int:
        """A number that arrivals do not exceed of which this many are due on average."""
        return mean + 10 * math.isqrt(mean) + 10 if self._drawn else mean

    def counts(self, instants_ns: Iterable[int]) -> list[int]:
        """The number of open-loop arrivals that are due before each of these increasing instants."""
        until = (min(instant, self.end_ns) for instant in instants_ns)
        return list(self._drawn_counts(until) if self._drawn else map(self._even_count, until))

    @property
    def _open(self) -> Schedule:
        assert self._schedule is not None
        return self._schedule

    @cached_property
    def _planned_ns(self) -> int:
        """The plan's own T. A Poisson wave has to be drawn to its end for it, so it is asked for once."""
        return self._planned_by(self.end_ns)

    def _planned_by(self, end_ns: int) -> int:
        """T of a wave that ends then at the latest."""
        if self._schedule is None or self.num_requests is None:
            return end_ns
        if not self._drawn:
            return min(end_ns, self._schedule.due(self.num_requests))
        before = 0
        for block in self._drawn_blocks():
            if before + len(block) > self.num_requests:
                return int(min(end_ns, block[self.num_requests - before]))
            if block[-1] >= end_ns:
                break
            before += len(block)
        return end_ns

    def _even_count(self, until_ns: int) -> int:
        arrivals = self._open.count(until_ns)
        return arrivals if self.num_requests is None else min(arrivals, self.num_requests)

    def _drawn_counts(self, instants_ns: Iterable[int]) -> Iterator[int]:
        """The number of arrivals that are due before each of these increasing instants, of as many as are planned."""
        most = self.num_requests
        blocks = self._drawn_blocks()
        before, block = 0, next(blocks)
        for instant in instants_ns:
            while block[-1] < instant and (most is None or before < most):
                before += len(block)
                block = next(blocks)
            count = before + bisect_left(block, instant)
            yield count if most is None else min(count, most)

    def _drawn_blocks(self) -> Iterator[list[float]]:
        """The instants of the Poisson arrivals, not yet cut to whole ns, many at once."""
        instants = self._instants()
        while True:
            yield list(islice(instants, _CHUNK))

    def _instants(self) -> Iterator[float]:
        return self._open.instants(unit_rate(self.seed))


class ClosedStripe:
    """One worker's share of a closed loop's first C arrivals; each completion takes the next, due at that instant."""

    def __init__(self, bucket: TokenBucket, worker: int) -> None:
        assert isinstance(bucket.load, ClosedLoop)
        self._step = bucket.workers
        self._next = worker
        self._next_warmup = worker - bucket.workers
        self._end_ns = bucket.end_ns
        self._num_requests = bucket.num_requests
        self.arrivals = len(range(worker, bucket.load.concurrency, bucket.workers))

    def take(self, now_ns: int) -> Arrival | None:
        """The arrival that is due now, or None when the wave's bounds are reached."""
        if now_ns >= self._end_ns:
            return None
        if now_ns < 0:
            index = self._next_warmup
            self._next_warmup -= self._step
            return Arrival(index, now_ns)
        index = self._next
        if self._num_requests is not None and index >= self._num_requests:
            return None
        self._next += self._step
        return Arrival(index, now_ns)

    @property
    def end_ns(self) -> int | None:
        """From when on no arrival is handed out, where there is a time bound."""
        return None if self._end_ns == NO_END else self._end_ns

    @property
    def spent(self) -> bool:
        """Tells whether every request of the plan's number has been handed out."""
        return self._num_requests is not None and self._next >= self._num_requests

    def stop(self, at_ns: int) -> None:
        """Hand out no arrival from this instant on."""
        self._end_ns = min(self._end_ns, at_ns)
