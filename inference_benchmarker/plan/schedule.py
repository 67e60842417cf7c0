"""The rate over the wave, made of segments, and the instant at which each arrival is due under it. Pure.

Arrival *i* is due where the area under the rate reaches *i*. Each due time is worked out from *i* alone, in whole
numbers, so no error accumulates; a fraction of an arrival is carried from one segment into the next.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from decimal import Decimal


NO_END = 1 << 62


@dataclass(frozen=True)
class Segment:
    """A stretch of the schedule: from ``from_rps`` to ``to_rps`` along a straight line, ns after wave start.

    ``before`` is the area under the rate up to its start: arrival *i* is in it if ``before <= i < after``, so one
    whose turn comes when a pause begins is due when the pause ends.
    """

    start_ns: int
    end_ns: int
    before: Fraction
    from_rps: Fraction
    to_rps: Fraction

    @cached_property
    def after(self) -> Fraction:
        """The area under the rate up to its end."""
        return self.before + (self.from_rps + self.to_rps) / 2 * (self.end_ns - self.start_ns) / NS

    def area(self, at_ns: int) -> Fraction:
        """The area under the rate up to an instant in it."""
        elapsed = at_ns - self.start_ns
        slope, rate, _ = self._line
        return self.before + rate * elapsed + slope * elapsed * elapsed

    @property
    def indices(self) -> range:
        """The arrivals that are in it."""
        return range(math.ceil(self.before), math.ceil(self.after))

    def dues(self, indices: Iterable[int]) -> Iterator[int]:
        """When these arrivals of it are due: the whole nanosecond before the exact instant.

        It solves ``slope t^2 + rate t = i - before``, all multiplied by the least number that makes them whole.
        """
        slope, rate, before = self._whole
        start = self.start_ns
        if not slope:
            offset = start * rate - before[0]
            return ((index * before[1] + offset) // rate for index in indices)
        if slope > 0:
            return (start + (math.isqrt(under) - rate) // (2 * slope) for under in self._under_the_root(indices))
        return (start + (rate - _root_above(under)) // (-2 * slope) for under in self._under_the_root(indices))

    def instants(self, first: float, drawn: Iterator[float]) -> Generator[float, None, float]:
        """When the area reaches the first number and those drawn after it; returns the first one that is beyond it."""
        slope, rate, before = map(float, self._line)
        start, end, after = self.start_ns, float(self.end_ns), float(self.after)
        numbers, number = chain((first,), drawn), first
        if not slope:
            period = float(NS / self.from_rps) if self.from_rps else math.inf
            for number in numbers:
                if number >= after:
                    break
                yield start + (number - before) * period
        else:
            square, factor = rate * rate, 4 * slope
            for number in numbers:
                if number >= after:
                    break
                area = number - before
                yield min(end, start + 2 * area / (rate + math.sqrt(max(0.0, square + factor * area))))
        return number

    def _under_the_root(self, indices: Iterable[int]) -> Iterator[int]:
        slope, rate, (before, whole) = self._whole
        square, factor = rate * rate, 4 * slope
        return (square + factor * (index * whole - before) for index in indices)

    @cached_property
    def _line(self) -> tuple[Fraction, Fraction, Fraction]:
        """Half the rate's slope, its start and the area before, in nanoseconds."""
        slope = (self.to_rps - self.from_rps) / (2 * (self.end_ns - self.start_ns) * NS)
        return slope, self.from_rps / NS, self.before

    @cached_property
    def _whole(self) -> tuple[int, int, tuple[int, int]]:
        slope, rate, before = self._line
        whole = math.lcm(slope.denominator, rate.denominator, before.denominator)
        return int(slope * whole), int(rate * whole), (int(before * whole), whole)


class Schedule:
    """Segments without a gap from wave start on; a constant rate is one without an end."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.segments = tuple(segments)

    @property
    def end_ns(self) -> int:
        """The end of the last segment."""
        return self.segments[-1].end_ns

    @property
    def first_rps(self) -> Fraction:
        """The rate at wave start, which is the warm-up's, too."""
        return self.segments[0].from_rps

    def changed(self, at_ns: int, rate: Decimal) -> Schedule:
        """The same up to an instant, and another rate from then on; only the last segment may be cut short.

        No arrival before the instant moves: what it had of the next one by then is carried over.
        """
        *before, last = self.segments
        if at_ns < max(last.start_ns, 1) or last.end_ns != NO_END or last.from_rps != last.to_rps:
            raise ValueError(f"the rate cannot be changed at {at_ns} ns: the last segment begins at {last.start_ns} ns")
        if at_ns > last.start_ns:
            before.append(replace(last, end_ns=at_ns))
        now = Fraction(rate)
        return Schedule([*before, Segment(at_ns, NO_END, last.area(at_ns), now, now)])

    def area(self, at_ns: int) -> Fraction:
        """The area under the rate up to this instant: the mean number of arrivals that are due before it."""
        at_ns = min(at_ns, self.end_ns)
        if at_ns <= 0:
            return Fraction(0)
        found = bisect_right(self.segments, at_ns, key=lambda segment: segment.start_ns) - 1
        return self.segments[found].area(at_ns)

    def count(self, until_ns: int) -> int:
        """The number of evenly spaced arrivals that are due before this instant."""
        return math.ceil(self.area(until_ns))  # i is due before it if the area is above i there

    def due(self, index: int) -> int:
        """When an evenly spaced arrival is due; the end for one that the schedule does not have."""
        for segment in self.segments:
            if index in segment.indices:
                return next(segment.dues([index]))
        return self.end_ns

    def dues(self, first: int, step: int, stop: int) -> Iterator[tuple[int, int]]:
        """The evenly spaced arrivals ``first``, ``first + step``, ... before ``stop``: index and due time."""
        found = self.segments[bisect_right(self.segments, Fraction(first), key=lambda segment: segment.after) :]
        parts = ((segment, _part(segment.indices, first, step, stop)) for segment in found)
        return chain.from_iterable(zip(indices, segment.dues(indices), strict=True) for segment, indices in parts)

    def instants(self, drawn: Iterator[float]) -> Iterator[float]:
        """The instants of arrivals that are drawn at one a unit: each where the area reaches its number.

        So a stream of rate 1 becomes one of the schedule's rate (inhomogeneous Poisson; Cinlar, Introduction to
        stochastic processes, 1975, 4.7). What is drawn beyond the schedule is never due.
        """
        number = next(drawn)
        begin = bisect_right(self.segments, number, key=lambda segment: float(segment.after))
        for segment in self.segments[begin:]:
            number = yield from segment.instants(number, drawn)
        yield from repeat(math.inf)


def _part(indices: range, first: int, step: int, stop: int) -> range:
    """Those of ``first``, ``first + step``, ... before ``stop`` that are among these increasing indices."""
    skipped = max(0, -((first - indices.start) // step))
    return range(first + skipped * step, min(stop, indices.stop), step)


def _root_above(number: int) -> int:
    """The square root, rounded up."""
    return math.isqrt(number - 1) + 1 if number > 0 else 0
