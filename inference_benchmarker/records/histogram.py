"""Counts of times in buckets that widen with them, which can be added up while a wave runs. Pure.

A time's bucket is the upper half of its single-precision float: the exponent and the first bits of the mantissa. So
each power of two has 64 buckets, a value stands for its bucket with an error of at most 1/128, and whole numbers below
128 are exact. A worker counts by one bit more of the mantissa, which is cheap for many values at once.
"""

from __future__ import annotations

import math
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from functools import cache
from itertools import accumulate
from struct import Struct
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_COUNT = 1 << 53
_FLOAT, _BITS = Struct("<f"), Struct("<I")
BUCKET_SHIFT = 17  # of a float's 32 bits, those below the first six of the mantissa
_NEGATIVE = 0x8000  # the sign in the upper 16 of them
_UPPER = 1 if sys.byteorder == "little" else 0


def _bucket(value: int) -> int:
    return int(_BITS.unpack(_FLOAT.pack(value))[0]) >> BUCKET_SHIFT


MOST_BUCKET = _bucket(1 << 63)


@cache  # there are some ten thousand
def value_of(bucket: int) -> float:
    """The middle of a bucket; of one that has room for a single whole number, that."""
    low, high = (_FLOAT.unpack(_BITS.pack(each << BUCKET_SHIFT))[0] for each in (bucket, bucket + 1))
    return float(low if high - low <= 1 else (low + high) / 2)


def tally(counts: Counter[int], values: list[int]) -> None:
    """Count whole nanoseconds by the upper 16 bits of their floats, without a step of Python's for each."""
    counts.update(halves(values))


def halves(values: list[int]) -> list[int]:
    """The upper 16 bits of the floats of some whole nanoseconds."""
    return memoryview(array("f", values)).cast("B").cast("H")[_UPPER::2].tolist()


def bucket_of(half: int) -> int:
    """The bucket of the values whose floats begin with these 16 bits."""
    return 0 if half & _NEGATIVE else half >> 1


class Histogram:
    """The number of values in each bucket; those below zero count as zero.

    No time is shorter than none: a difference of two stamps that is negative comes from the clock alone.
    """

    __slots__ = ("_ranked", "count", "counts")

    def __init__(self, counts: dict[int, int] | None = None) -> None:
        self.counts = {} if counts is None else counts
        self.count = sum(self.counts.values())
        self._ranked: tuple[int, list[int], list[int]] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.counts == other.counts

    __hash__ = None  # type: ignore[assignment]  # it changes

    @classmethod
    def of(cls, values: Iterable[int]) -> Self:
        """The histogram of some times in whole nanoseconds."""
        counts: Counter[int] = Counter()
        tally(counts, list(values))
        return cls.of_tally(counts)

    @classmethod
    def of_tally(cls, tallied: Counter[int]) -> Self:
        """The histogram of what ``tally`` counted."""
        counts: dict[int, int] = {}
        for half, count in tallied.items():
            bucket = bucket_of(half)
            counts[bucket] = counts.get(bucket, 0) + count
        return cls(counts)

    def add(self, value_ns: int) -> None:
        """Count one time."""
        self._take(_bucket(max(value_ns, 0)), 1)

    def merge(self, other: Histogram) -> None:
        """Count what another one counted, too."""
        counts, count_of = self.counts, self.counts.get
        for bucket, count in other.counts.items():
            counts[bucket] = count_of(bucket, 0) + count
        self.count += other.count

    def _take(self, bucket: int, count: int) -> None:
        self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.count += count

    def percentile(self, percent: float) -> float | None:
        """The value in seconds at rank ceil(percent / 100 * n), as the summary's; None where there is nothing."""
        return self.percentiles(percent)[0]

    def percentiles(self, *percents: float) -> list[float | None]:
        """Several percentiles, in seconds; None for each where there is nothing."""
        if not self.count:
            return [None] * len(percents)
        buckets, ranks = self._in_order()
        return [value_of(buckets[bisect_left(ranks, self._rank(percent))]) / NS for percent in percents]

    def _in_order(self) -> tuple[list[int], list[int]]:
        """The buckets, and how many values are in each and those before; kept, as a view asks twice a second for all.

        What is counted never becomes less: as many values are the same values.
        """
        if self._ranked is None or self._ranked[0] != self.count:
            buckets = sorted(self.counts)
            ranks = list(accumulate(map(self.counts.__getitem__, buckets)))
            self._ranked = self.count, buckets, ranks
        return self._ranked[1:]

    def _rank(self, percent: float) -> int:
        # 99.9 / 100 * 1000 is 999.0000000000001 in floating point
        return min(max(math.ceil(round(percent * self.count / 100, 9)), 1), self.count)

    def share_below(self, limit_s: float) -> float | None:
        """The share of values below a limit in seconds; None where there is nothing."""
        if not self.count:
            return None
        return sum(count for bucket, count in self.counts.items() if value_of(bucket) < limit_s * NS) / self.count

    @property
    def total_s(self) -> float:
        """All values, added up, in seconds."""
        return sum(count * value_of(bucket) for bucket, count in self.counts.items()) / NS

    def to_json(self) -> list[int]:
        """Each bucket as the step from the one before, and its count: ``[bucket, count, step, count, ...]``."""
        numbers, before = [], 0
        for bucket in sorted(self.counts):
            numbers += [bucket - before, self.counts[bucket]]
            before = bucket
        return numbers

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The histogram that ``to_json`` described; ValueError where it is none. It may be anybody's."""
        if type(data) is not list or len(data) % 2 or not set(map(type, data)) <= {int}:
            raise ValueError("a histogram that is no list of pairs of whole numbers")
        steps, counts = data[::2], data[1::2]
        if counts and not 1 <= min(counts) <= max(counts) <= MOST_COUNT:
            raise ValueError("a histogram with a count out of bounds")
        buckets = list(accumulate(steps))
        if buckets and (steps[0] < 0 or min(steps[1:], default=1) < 1 or buckets[-1] > MOST_BUCKET):
            raise ValueError("a histogram whose buckets are not in order, or out of bounds")
        return cls(dict(zip(buckets, counts, strict=True)))
