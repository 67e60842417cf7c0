"""Turns a plan into arrivals: who is due when, and which worker sends it. Pure: no clock, no sleep.

Arrival *i* has a due time, a worker (``i mod W``), a payload (``i mod n``) and a record; nothing else keeps
count. Due times are absolute nanoseconds after wave start, so no error accumulates. Warm-up arrivals have
negative indices and negative due times.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, count, islice
from operator import neg
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.plan.plan import Bounds, ClosedLoop, OpenLoop, WavePlan
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WARMUP_STREAM = 0x77
_NO_END = 1 << 62
_CHUNK = 1 << 12
_MASK = (1 << 64) - 1


class Arrival(NamedTuple):
    """The right to send one request: its place in the whole wave, and when it is due (ns after wave start)."""

    index: int  # type: ignore[assignment]  # the place in the wave, not tuple.index
    due: int


class TokenBucket:
    """The wave's arrivals, the same for any number of workers.

    Open loop: the schedule fills the bucket; ``arrivals(worker)`` are one worker's stripe in order of due time.
    Closed loop: the bucket starts with C arrivals and gets another for each completion; ``stripe(worker)`` is
    one worker's share of them.
    """

    def __init__(
        self,
        load: OpenLoop | ClosedLoop,
        bounds: Bounds,
        *,
        workers: int = 1,
        seed: int = 0,
        warmup_ns: int = 0,
    ) -> None:
        self.load = load
        self.workers = workers
        self.seed = seed
        self.warmup_ns = warmup_ns
        self.end_ns = _NO_END if bounds.duration_ns is None else bounds.duration_ns
        self.num_requests = bounds.num_requests

    @classmethod
    def of(cls, plan: WavePlan) -> TokenBucket:
        """The bucket of a plan whose seed is settled."""
        return cls(plan.load, plan.bounds, workers=plan.workers, seed=plan.seed or 0, warmup_ns=plan.warmup_ns)

    def arrivals(self, worker: int) -> Iterator[Arrival]:
        """One worker's open-loop arrivals, warm-up first, in order of due time."""
        if not isinstance(self.load, OpenLoop):
            raise TypeError("a closed loop has no schedule: use stripe()")
        if self.load.arrivals == "constant":
            return self._constant(worker)
        return self._poisson(worker)

    def stripe(self, worker: int) -> ClosedStripe:
        """One worker's share of a closed loop."""
        if not isinstance(self.load, ClosedLoop):
            raise TypeError("an open loop has no stripe: use arrivals()")
        return ClosedStripe(self, worker)

    def count(self, until_ns: int | None = None) -> list[int]:
        """The open-loop arrivals of each worker that are due before ``until_ns`` (default: the plan's end)."""
        assert isinstance(self.load, OpenLoop)
        until = self.end_ns if until_ns is None else min(until_ns, self.end_ns)
        total = self._constant_count(until) if self.load.arrivals == "constant" else self._poisson_count(until)
        return [len(range(worker, total, self.workers)) for worker in range(self.workers)]

    def duration_ns(self, until_ns: int | None = None) -> int | None:
        """The planned duration T: the time bound, or when the arrival after the last one would be due.

        So N arrivals at a constant rate have T = N / rate: no fence-post. None for a closed loop that is
        bounded by a number of requests alone.
        """
        end = self._planned_ns if until_ns is None else self._planned_by(max(0, min(until_ns, self.end_ns)))
        return None if end == _NO_END else end

    def surely_over_ns(self, until_ns: int | None = None) -> int | None:
        """An instant by which every arrival has been due, without drawing a Poisson wave to its end.

        The N-th arrival's due time has the mean N / rate and the standard deviation sqrt(N) / rate.
        """
        end = self.end_ns if until_ns is None else min(until_ns, self.end_ns)
        if isinstance(self.load, OpenLoop) and self.num_requests is not None:
            arrivals = self.num_requests + 10 * math.isqrt(self.num_requests) + 10
            end = min(end, int(arrivals * self._period()))
        return None if end == _NO_END else end

    def draws(self, until_ns: int | None = None) -> float:
        """About how many arrivals must be drawn to count those due by then; 0 where they can be worked out."""
        if not isinstance(self.load, OpenLoop) or self.load.arrivals == "constant":
            return 0.0
        until = self.end_ns if until_ns is None else min(until_ns, self.end_ns)
        due = max(until, 0) / float(self._period())
        return due if self.num_requests is None else min(due, self.num_requests)

    def most_arrivals(self) -> int | None:
        """A number that the wave's arrivals do not exceed; None where the endpoint's answers decide."""
        most = [] if self.num_requests is None else [self.num_requests]
        if isinstance(self.load, OpenLoop) and self.end_ns != _NO_END:
            mean = math.ceil(self.end_ns / float(self._period()))
            most.append(mean if self.load.arrivals == "constant" else mean + 10 * math.isqrt(mean) + 10)
        return min(most, default=None)

    def counts(self, instants_ns: Iterable[int]) -> list[int]:
        """The number of open-loop arrivals that are due before each of these increasing instants."""
        assert isinstance(self.load, OpenLoop)
        if self.load.arrivals == "constant":
            return [self._constant_count(min(instant, self.end_ns)) for instant in instants_ns]
        return list(self._poisson_counts(min(instant, self.end_ns) for instant in instants_ns))

    @cached_property
    def _planned_ns(self) -> int:
        """The plan's own T. A Poisson wave has to be drawn to its end for it, so it is asked for once."""
        return self._planned_by(self.end_ns)

    def _planned_by(self, end_ns: int) -> int:
        """T of a wave that ends then at the latest."""
        if not isinstance(self.load, OpenLoop) or self.num_requests is None:
            return end_ns
        if self.load.arrivals == "constant":
            numerator, denominator = self._period_parts
            return min(end_ns, self.num_requests * numerator // denominator)
        before = 0
        for block in self._poisson_blocks():
            if before + len(block) > self.num_requests:
                return min(end_ns, int(block[self.num_requests - before]))
            if block[-1] >= end_ns:
                break
            before += len(block)
        return end_ns

    def _period(self) -> Fraction:
        """Nanoseconds between arrivals, exactly."""
        assert isinstance(self.load, OpenLoop)
        return NS / Fraction(self.load.rate)

    @cached_property
    def _period_parts(self) -> tuple[int, int]:
        """The period as a fraction: a timeline asks for as many counts as it has seconds."""
        period = self._period()
        return period.numerator, period.denominator

    def _constant_count(self, until_ns: int) -> int:
        # floor(i * period) < until  <=>  i * period < until, for a whole number until
        numerator, denominator = self._period_parts
        arrivals = max(0, -(-until_ns * denominator // numerator))
        return arrivals if self.num_requests is None else min(arrivals, self.num_requests)

    def _constant(self, worker: int) -> Iterator[Arrival]:
        period = self._period()
        numerator, denominator = period.numerator, period.denominator
        warmup = int(self.warmup_ns // period)
        first = -warmup + (worker + warmup) % self.workers
        stop = self._constant_count(self.end_ns)
        for index in range(first, stop, self.workers):
            yield Arrival(index, index * numerator // denominator)

    def _poisson(self, worker: int) -> Iterator[Arrival]:
        workers = self.workers
        for index, due in self._poisson_warmup():
            if index % workers == worker:
                yield Arrival(index, due)
        for index, due in self._bounded_poisson(self.end_ns):
            if index % workers == worker:
                yield Arrival(index, due)

    def _poisson_count(self, until_ns: int) -> int:
        return next(self._poisson_counts([until_ns]))

    def _poisson_counts(self, instants_ns: Iterable[int]) -> Iterator[int]:
        """The number of arrivals that are due before each of these increasing instants, of as many as are planned."""
        most = self.num_requests
        blocks = self._poisson_blocks()
        before, block = 0, next(blocks)
        for instant in instants_ns:
            while block[-1] < instant and (most is None or before < most):
                before += len(block)
                block = next(blocks)
            count = before + bisect_left(block, instant)
            yield count if most is None else min(count, most)

    def _poisson_blocks(self) -> Iterator[list[float]]:
        """The due times of ``_poisson_stream``, not yet cut to whole ns, drawn several times as fast: many at once."""
        period = float(self._period())
        draw = Random(self.seed * 256).random
        elapsed = accumulate(map(neg, map(math.log, map((1.0).__sub__, iter(draw, None)))))
        while True:
            yield [mean_gaps * period for mean_gaps in islice(elapsed, _CHUNK)]

    def _bounded_poisson(self, until_ns: int) -> Iterator[tuple[int, int]]:
        stop = self.num_requests
        for index, due in self._poisson_stream():
            if due >= until_ns or index == stop:
                return
            yield index, due

    def _poisson_stream(self, stream: int = 0) -> Iterator[tuple[int, int]]:
        """Every arrival of a Poisson process, drawn alike by each worker: exponential gaps by inversion.

        The running sum is in units of the mean gap, so its rounding (1e-16 of it) stays below a nanosecond.
        """
        period = float(self._period())
        draw = Random(self.seed * 256 + stream).random
        elapsed = 0.0
        for index in count():
            elapsed -= math.log(1.0 - draw())
            yield index, int(elapsed * period)

    def _poisson_warmup(self) -> Iterator[tuple[int, int]]:
        """The warm-up's own stream, forward in time; its length is counted first, so that indices end at -1."""
        if not self.warmup_ns:
            return
        total = next(index for index, due in self._poisson_stream(_WARMUP_STREAM) if due >= self.warmup_ns)
        for index, due in self._poisson_stream(_WARMUP_STREAM):
            if index == total:
                return
            yield index - total, due - self.warmup_ns


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
        return None if self._end_ns == _NO_END else self._end_ns

    @property
    def spent(self) -> bool:
        """Tells whether every request of the plan's number has been handed out."""
        return self._num_requests is not None and self._next >= self._num_requests

    def stop(self, at_ns: int) -> None:
        """Hand out no arrival from this instant on."""
        self._end_ns = min(self._end_ns, at_ns)


def uniform(seed: int, index: int) -> float:
    """A number in [0, 1) that depends on the seed and the arrival alone, so any worker draws it alike.

    The mixing function is SplitMix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number
    generators, OOPSLA 2014).
    """
    z = (seed * 0x9E3779B97F4A7C15 + (index + 1) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((z ^ (z >> 31)) >> 11) / (1 << 53)
