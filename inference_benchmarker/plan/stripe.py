"""One worker's stripe of the open loop: its arrivals in order, and how they go on when the rate is changed. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate, chain, compress, count, islice, repeat, starmap, takewhile, tee
from operator import itemgetter, neg
from random import Random
from typing import TYPE_CHECKING

from inference_benchmarker.plan.schedule import NO_END
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from inference_benchmarker.plan.schedule import Schedule

_WINDOW_STREAM, _WARMUP_STREAM = 0, 0x77
_OWNERS_STREAM, _WARMUP_OWNERS_STREAM = 0x05, 0x0E
_STREAMS = 256
_PIECE = 64  # numbers drawn at once: with many workers it is them all that are drawn


class OpenStripe:
    """The arrivals ``worker``, ``worker + workers``, ... of the open loop, each an index and a due time.

    ``seed``: that of Poisson arrivals; None where they are evenly spaced. Where those are ``scattered``, each has the
    worker that ``owners`` draws for it, instead of one in turn. Of a ``steered`` load the last arrival is one
    that waits: its index is the next one's, and it is due at ``NO_END`` unless the rate changes.
    """

    def __init__(
        self,
        schedule: Schedule,
        worker: int,
        workers: int,
        *,
        end_ns: int = NO_END,
        num_requests: int | None = None,
        warmup_ns: int = 0,
        seed: int | None = None,
        scattered: bool = False,
        steered: bool = False,
    ) -> None:
        self._schedule = schedule
        self._worker = worker
        self._workers = workers
        self._end_ns = end_ns
        self._num_requests = num_requests
        self._warmup_ns = warmup_ns
        self._seed = seed
        self._scattered = scattered
        self._steered = steered
        self._units = None if seed is None else _OwnUnits(_own(seed, worker, workers, scattered=scattered))

    def arrivals(self) -> Iterator[tuple[int, int]]:
        """Its arrivals, warm-up first."""
        return chain(self._warmup(), self._window(self._first))

    def changed(self, at_ns: int, rate: Decimal, first: int) -> Iterator[tuple[int, int]]:
        """Its arrivals from index ``first`` on, which was not handed over yet, with another rate from ``at_ns`` on."""
        self._schedule = self._schedule.changed(at_ns, rate)
        if first >= 0:
            return self._window(first)
        rest = (arrival for arrival in self._warmup() if arrival[0] >= first)
        return chain(rest, self._window(self._first))

    @property
    def _first(self) -> int:
        """No arrival of the window before it is its own."""
        return 0 if self._scattered else self._worker

    def _window(self, first: int) -> Iterator[tuple[int, int]]:
        return self._even(first) if self._units is None else self._drawn(self._units, first)

    def _even(self, first: int) -> Iterator[tuple[int, int]]:
        stop = self._schedule.count(self._end_ns)
        if self._num_requests is not None:
            stop = min(stop, self._num_requests)
        yield from self._schedule.dues(first, self._workers, stop)
        if self._steered:
            yield max(first, stop + (self._worker - stop) % self._workers), NO_END

    def _drawn(self, units: _OwnUnits, first: int) -> Iterator[tuple[int, int]]:
        numbered, drawn = tee(units.since(first))
        indices: Iterator[int] = map(itemgetter(0), numbered)
        if self._num_requests is not None:
            indices = takewhile(self._num_requests.__gt__, indices)
        instants = self._schedule.instants(map(itemgetter(1), drawn))
        for index, instant in zip(indices, instants, strict=False):
            if instant >= self._end_ns:
                if self._steered:
                    yield index, NO_END
                return
            yield index, int(instant)

    def _warmup(self) -> Iterator[tuple[int, int]]:
        return self._even_warmup() if self._seed is None else self._drawn_warmup(self._seed)

    def _even_warmup(self) -> Iterator[tuple[int, int]]:
        rate = self._schedule.first_rps
        warmup = int(self._warmup_ns * rate / NS)
        first = -warmup + (self._worker + warmup) % self._workers
        for index in range(first, 0, self._workers):
            yield index, index * NS * rate.denominator // rate.numerator

    def _drawn_warmup(self, seed: int) -> Iterator[tuple[int, int]]:
        """The warm-up's own stream, forward in time; its length is counted first, so that indices end at -1."""
        if not self._warmup_ns * self._schedule.first_rps:
            return
        total = sum(1 for _ in self._warmup_instants(seed))
        in_turn = ((place - total) % self._workers for place in count())
        drawn = owners(seed, self._workers, _WARMUP_OWNERS_STREAM) if self._scattered else in_turn
        for place, (instant, worker) in enumerate(zip(self._warmup_instants(seed), drawn, strict=False)):
            if worker == self._worker:
                yield place - total, int(instant) - self._warmup_ns

    def _warmup_instants(self, seed: int) -> Iterator[float]:
        period = float(NS / self._schedule.first_rps)
        instants = (drawn * period for drawn in unit_rate(seed, _WARMUP_STREAM))
        return takewhile(lambda instant: instant < self._warmup_ns, instants)


class _OwnUnits:
    """One worker's part of the process of rate 1; it can be read again from one of its last few numbers on.

    So a change of the rate needs none of them to be drawn again from the start. Each number has its arrival's index.
    """

    def __init__(self, drawn: Iterator[tuple[int, float]]) -> None:
        self._drawn = drawn
        self._kept: list[tuple[int, float]] = []
        self._first = 0

    def since(self, index: int) -> Iterator[tuple[int, float]]:
        """Its numbers from that of this arrival on; ValueError for one that was read long ago."""
        if index < self._first:
            raise ValueError(f"the number of arrival {index} is not kept any more; the first kept is {self._first}'s")
        return chain.from_iterable(self._pieces(index))

    def _pieces(self, index: int) -> Iterator[list[tuple[int, float]]]:
        yield self._kept[bisect_left(self._kept, (index,)) :]
        while True:
            piece = list(islice(self._drawn, _PIECE))
            if len(self._kept) > _PIECE:
                self._first = self._kept[-_PIECE][0]
            self._kept = self._kept[-_PIECE:] + piece
            yield piece


def _own(seed: int, worker: int, workers: int, *, scattered: bool) -> Iterator[tuple[int, float]]:
    """The indices of a worker's arrivals, and their numbers."""
    numbers = _negative_units(seed, _WINDOW_STREAM)
    if not scattered:
        return zip(count(worker, workers), map(neg, islice(numbers, worker, None, workers)), strict=False)
    own = map(worker.__eq__, owners(seed, workers))
    return ((index, -number) for index, number in compress(enumerate(numbers), own))


def owners(seed: int, workers: int, stream: int = _OWNERS_STREAM) -> Iterator[int]:
    """The worker of each arrival where hosts have clocks of their own: it depends on seed and index, so all draw alike.

    So each worker's arrivals are a Poisson process, independent of the others', and remain one together however far
    their clocks are apart: stripes in turn would not (Kingman: Poisson Processes, 1993, section 5.1).
    """
    draw = Random(seed * _STREAMS + stream).random
    return map(int, map(float(workers).__mul__, starmap(draw, repeat(()))))


def unit_rate(seed: int, stream: int = _WINDOW_STREAM) -> Iterator[float]:
    """A Poisson process of rate 1, drawn alike by each worker: exponential gaps by inversion, summed up."""
    return map(neg, _negative_units(seed, stream))


def _negative_units(seed: int, stream: int) -> Iterator[float]:
    """The same below zero: a worker draws the others' numbers, too, and turns the sign of its own alone."""
    draw = Random(seed * _STREAMS + stream).random
    return accumulate(map(math.log, map((1.0).__sub__, starmap(draw, repeat(())))))
