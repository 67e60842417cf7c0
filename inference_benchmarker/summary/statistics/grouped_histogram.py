"""Samples of many groups, as the labels of a wave, that are added up part by part in bounded memory. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.summary.statistics.streaming_histogram import (
    PRECISION,
    Moments,
    bucketed_distribution,
    buckets_of,
    middles_of,
)

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Floats, Int64

MOST_HELD = 1 << 18
"""Values of all groups together that are kept."""
ROOM = 1 << 21
"""Buckets that have a count, of all groups together."""
_BUCKET_BITS = 26  # of a float's exponent and 13 bits of its mantissa, either sign
_MOST_WAITING = 1 << 18  # in 2 MiB, which malloc keeps: of larger blocks each page is the system's anew
_MOST_COUNTED = 1 << 20  # buckets that are counted whether or not they have a value


class GroupedHistogram:
    """A sample for each of some groups, which are numbered from 0.

    All values are kept while they are at most ``most_held`` together; of more, counts of their buckets, which are twice
    as wide whenever there are more than ``room`` of them. Count, mean, least and most are exact in either case.
    """

    def __init__(self, most_held: int = MOST_HELD, room: int = ROOM) -> None:
        self._most_held, self._room = most_held, room
        self._held: list[tuple[Int64, Floats]] = []
        self._moments: _EachMoments | None = None
        self._counts = _Counts(room)

    def add(self, groups: Int64, values: Floats) -> None:
        """Take in some more values, each of its group."""
        self._held.append((groups, values))
        if self._moments is None and sum(len(each) for each, _ in self._held) > self._most_held:
            self._moments = _EachMoments()
        if self._moments is not None:
            for some, theirs in self._held:
                self._moments.add(some, theirs)
                self._counts.add(some, theirs)
            self._held.clear()

    def distributions(self, number: int, groups: Int64, ages: Floats) -> list[Distribution | None]:
        """The distribution of each of that many groups, with the ages that are lower bounds, each of its group.

        Nothing can be added any more.
        """
        order = np.argsort(groups, kind="stable")
        each_ages = np.split(ages[order], np.searchsorted(groups[order], range(1, number)))
        if self._moments is None:
            return list(map(Distribution.of, self._exact(number), each_ages))
        self._moments.add(groups, ages)
        self._counts.add(groups, ages)
        self._counts.count()
        bounds = [float(some.min()) if len(some) else None for some in each_ages]
        return [self._bucketed(self._moments, group, bound) for group, bound in enumerate(bounds)]

    def _exact(self, number: int) -> list[Floats]:
        groups = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in self._held)])
        values = np.concatenate([np.zeros(0), *(each for _, each in self._held)])
        order = np.argsort(groups, kind="stable")
        return np.split(values[order], np.searchsorted(groups[order], range(1, number)))

    def _bucketed(self, moments: _EachMoments, group: int, lower_bound_from: float | None) -> Distribution | None:
        exact = moments.of(group)
        return (
            bucketed_distribution(exact, *self._counts.of(group), lower_bound_from, self._counts.precision)
            if exact.count
            else None
        )


class _EachMoments:
    """Count, mean, sum of squared differences, least and most of each group."""

    def __init__(self) -> None:
        self._rows = np.zeros((5, 0))

    def add(self, groups: Int64, values: Floats) -> None:
        """Both together, as `StreamingHistogram` does."""
        number = max(int(groups.max(initial=-1)) + 1, self._rows.shape[1])
        self._rows = np.pad(self._rows, ((0, 0), (0, number - self._rows.shape[1])))
        before, means, squares, least, most = self._rows
        least[before == 0], most[before == 0] = np.inf, -np.inf
        np.minimum.at(least, groups, values)
        np.maximum.at(most, groups, values)
        some = np.bincount(groups, minlength=number)
        both = np.maximum(before + some, 1)
        mean = np.bincount(groups, values, number) / np.maximum(some, 1)
        step = np.where(some > 0, mean - means, 0.0)
        squares += np.bincount(groups, np.square(values - mean[groups]), number) + step * step * before * some / both
        means += step * some / both
        before += some

    def of(self, group: int) -> Moments:
        """Those of a group."""
        if group >= self._rows.shape[1]:
            return Moments(0, 0.0, 0.0, 0.0, 0.0)
        count, mean, squares, least, most = self._rows[:, group].tolist()
        return Moments(int(count), mean, math.sqrt(squares / max(count, 1)), least, most)


class _Counts:
    """The number of values in each bucket of each group: those of the histogram, or wider ones if too many.

    A key is the group's number and, in its lower bits, that of the bucket. The keys are sorted.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._keys, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._waiting: list[Int64] = []
        self._coarser = 0  # this many bits of the buckets' numbers are left out

    def add(self, groups: Int64, values: Floats) -> None:
        buckets = buckets_of(values)
        buckets += 1 << (_BUCKET_BITS - 1)
        self._waiting.append(((groups << _BUCKET_BITS) | buckets) >> self._coarser)
        if sum(map(len, self._waiting)) >= _MOST_WAITING:
            self.count()

    @property
    def precision(self) -> float:
        """The most that a value differs from the middle of its bucket, as a share of it."""
        return PRECISION * 2.0**self._coarser

    def of(self, group: int) -> tuple[Floats, Int64]:
        """The middle of each bucket of a group, and its count."""
        bits = _BUCKET_BITS - self._coarser
        first, stop = np.searchsorted(self._keys, (group << bits, (group + 1) << bits))
        lowest = ((self._keys[first:stop] - (group << bits)) << self._coarser) - (1 << (_BUCKET_BITS - 1))
        highest = lowest + (1 << self._coarser) - 1
        return (middles_of(lowest) + middles_of(highest)) / 2, self._counts[first:stop]

    def count(self) -> None:
        """Count what waits for it."""
        if not self._waiting:
            return
        keys, counts = counts_of(np.concatenate(self._waiting), _BUCKET_BITS - self._coarser)
        self._waiting.clear()
        places = np.searchsorted(self._keys, keys)
        known = np.append(self._keys, -1)[places] == keys
        self._counts[places[known]] += counts[known]
        self._keys = np.insert(self._keys, places[~known], keys[~known])
        self._counts = np.insert(self._counts, places[~known], counts[~known])
        while len(self._keys) > self._room and self._coarser < _BUCKET_BITS:
            self._coarsen()

    def _coarsen(self) -> None:
        """Make one bucket of each two."""
        keys = self._keys >> 1
        firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        self._keys, self._counts = keys[firsts], np.add.reduceat(self._counts, firsts)
        self._coarser += 1


def counts_of(keys: Int64, bits: int) -> tuple[Int64, Int64]:
    """The different keys in their order, and how often each is there; ``bits``: of a bucket's number in a key.

    Where groups are few, the buckets between the lowest and the highest of them are counted in a fraction of the time
    in which the keys are sorted.
    """
    buckets = keys & ((1 << bits) - 1)
    lowest, groups = int(buckets.min()), int(keys.max() >> bits) + 1
    width = int(buckets.max()) + 1 - lowest
    if groups * width > _MOST_COUNTED:
        return np.unique(keys, return_counts=True)
    every = np.bincount((keys >> bits) * width + (buckets - lowest))
    found = np.flatnonzero(every)
    return (found // width << bits) + found % width + lowest, every[found]
