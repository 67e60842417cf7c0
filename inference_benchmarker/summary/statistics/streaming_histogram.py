"""Samples that are added up part by part: values are kept while they are few, and counted when they are many. Pure.

A value's bucket is the upper part of its double-precision float, the exponent and the first 13 bits of the mantissa, so
that each power of two has 8,192 buckets: the middle of one differs from each of its values by a share of 1/16,384 at
most.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.summary.statistics.distribution import Distribution

if TYPE_CHECKING:
    import numpy.typing as npt

    from inference_benchmarker.records.columns import Floats, Int64

MOST_EXACT = 1 << 19
"""Values of a sample whose statistics are exact."""
PRECISION = 2.0**-14
_SHIFT = 52 - 13
_MAGNITUDE = (1 << 63) - 1
_LEAST = 2.0**-30  # less than a nanosecond
_BELOW = int(np.float64(_LEAST).view(np.int64) >> _SHIFT) - 1


class StreamingHistogram:
    """The values of a sample, as parts of it come.

    At most ``most_held`` of them are kept; of more than that the counts of their buckets. Count, mean, least and most
    are exact in either case.
    """

    def __init__(self, most_held: int = MOST_EXACT) -> None:
        self._most_held = most_held
        self._held: list[Floats] = []
        self._counts = np.zeros(0, np.int64)
        self._first = 0  # the bucket of the first count
        self._counted_in = 0
        self._mean, self._squares = 0.0, 0.0
        self._least, self._most = math.inf, -math.inf

    @property
    def count(self) -> int:
        """The number of values."""
        return self._counted_in + sum(map(len, self._held))

    def add(self, values: npt.ArrayLike) -> None:
        """Take in some more."""
        some = np.asarray(values, np.float64)
        if not len(some):
            return
        self._held.append(some)
        if len(self._counts) or self.count > self._most_held:
            for each in self._held:
                self._add_moments(each)
                self._add_counts(each)
            self._held.clear()

    @property
    def median(self) -> float | None:
        """The middle value, or the mean of the two in the middle; None without values."""
        return None if self.middle is None else sum(self.middle) / 2

    @property
    def middle(self) -> tuple[float, float] | None:
        """The two values in the middle, twice the same of an odd number; None without values."""
        if not self.count:
            return None
        if len(self._counts):
            return self._bucketed(None).middle
        places = (self.count - 1) // 2, self.count // 2
        lower, upper = np.partition(self._joined(), places)[list(places)].tolist()
        return lower, upper

    def distribution(self, ages: npt.ArrayLike = ()) -> Distribution | None:
        """The distribution of the values, and of ages that are lower bounds; None where there is nothing.

        Ages are those of abandoned requests: never more than were in flight at the end.
        """
        held = np.asarray(ages, np.float64)
        if not len(self._counts):
            return Distribution.of(self._held[0] if len(self._held) == 1 else self._joined(), held)
        both = deepcopy(self)
        both.add(held)
        return both._bucketed(float(held.min()) if len(held) else None)  # noqa: SLF001 - another of this class

    def _joined(self) -> Floats:
        return np.concatenate([np.zeros(0), *self._held])

    def _add_moments(self, some: Floats) -> None:
        """Mean and sum of squared differences of both together (Chan, Golub and LeVeque, 1979)."""
        before, self._counted_in = self._counted_in, self._counted_in + len(some)
        mean = float(some.mean())
        step = mean - self._mean
        self._mean += step * len(some) / self._counted_in
        self._squares += float(some.var()) * len(some) + step * step * before * len(some) / self._counted_in
        self._least, self._most = min(self._least, float(some.min())), max(self._most, float(some.max()))

    def _add_counts(self, some: Floats) -> None:
        buckets = buckets_of(some)
        first, last = int(buckets.min()), int(buckets.max())
        if not len(self._counts):
            self._first = first
        before = max(self._first - first, 0)
        after = max(last + 1 - self._first - len(self._counts), 0)
        if before or after:
            self._counts = np.pad(self._counts, (before, after))
            self._first -= before
        self._counts += np.bincount(buckets - self._first, minlength=len(self._counts))

    def _bucketed(self, lower_bound_from: float | None) -> Distribution:
        taken = np.flatnonzero(self._counts)
        stdev = math.sqrt(self._squares / self._counted_in)
        moments = Moments(self._counted_in, self._mean, stdev, self._least, self._most)
        return bucketed_distribution(
            moments, middles_of(taken + self._first), self._counts[taken], lower_bound_from, PRECISION
        )


@dataclass(frozen=True, slots=True)
class Moments:
    """The exact statistics of a sample that was counted."""

    count: int
    mean: float
    stdev: float
    least: float
    most: float


def bucketed_distribution(
    moments: Moments, middles: Floats, counts: Int64, lower_bound_from: float | None, precision: float
) -> Distribution:
    """The distribution of a sample from the middles of its buckets and their counts; least and most are exact.

    Lower bounds begin with the middle of the least one's bucket, where that is below it: so they are shown as such.
    """
    count, least, most = moments.count, moments.least, moments.most
    inner = np.clip(middles, least, most)
    if lower_bound_from is not None:
        lower_bound_from = min(lower_bound_from, float(inner[np.argmin(np.abs(inner - lower_bound_from))]))
    values = np.concatenate(([least], inner, [most]))
    ranks = np.concatenate(([1], np.clip(np.cumsum(counts), 1, max(count - 1, 1)), [count]))
    return Distribution(count, moments.mean, moments.stdev, lower_bound_from, values, ranks, precision)


def buckets_of(values: Floats) -> Int64:
    """The number of each value's bucket, in the order of the values: 0 below ``_LEAST``, of negative ones negative."""
    bits = values.view(np.int64)
    found: Int64 = (bits & _MAGNITUDE) >> _SHIFT
    found -= _BELOW
    np.maximum(found, 0, out=found)
    if bits.min(initial=0) < 0:
        np.negative(found, out=found, where=bits < 0)
    return found


def middles_of(buckets: Int64) -> Floats:
    """The middle of each bucket."""
    above = np.abs(buckets) + _BELOW
    middles = ((above << _SHIFT) + (1 << (_SHIFT - 1))).view(np.float64)
    values: Floats = np.where(buckets == 0, 0.0, np.copysign(middles, buckets))
    return values
