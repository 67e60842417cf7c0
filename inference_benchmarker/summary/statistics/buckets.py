"""Samples of which the counts of buckets are known: their distributions, and sums and differences of them. Pure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.counts import PRECISION, bucket_values
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.records.columns import Int64

NOTHING = np.zeros(0, np.int64)


def of_buckets(
    measured: Int64, ages: Int64 = NOTHING, *, total: int | None = None, unit: int = NS
) -> Distribution | None:
    """The distribution of values and of ages that are lower bounds, by bucket; None where there is nothing.

    ``total``: the exact sum of the values, where it is known.
    """
    both = more(measured, ages)
    buckets = np.flatnonzero(both)
    if not len(buckets):
        return None
    counts, values = both[buckets], bucket_values(buckets) / unit
    number = int(counts.sum())
    mean = float(values @ counts) / number
    deviation = math.sqrt(float((values - mean) ** 2 @ counts) / number)
    aged = np.flatnonzero(ages)
    if total is not None:
        mean = (total / unit + float(bucket_values(aged) / unit @ ages[aged])) / number
    bound = float(bucket_values(aged[:1])[0]) / unit if len(aged) else None
    return Distribution(number, mean, deviation, bound, values, np.cumsum(counts), PRECISION)


def up_to(found: Distribution | None, longest: float) -> Distribution | None:
    """The same distribution with a value of its last bucket as the largest; the others of that bucket stay its middle.

    ``longest`` in the unit of the values; one of another bucket changes nothing.
    """
    if found is None or found.ranks is None or abs(longest - found.maximum) > found.precision * found.maximum:
        return found
    others = np.append(found.ranks[:-1], found.count - 1)
    kept = np.diff(others, prepend=0) > 0
    values = np.append(np.minimum(found.values, longest)[kept], longest)
    bound = found.lower_bound_from if found.lower_bound_from is None else min(found.lower_bound_from, longest)
    return replace(found, values=values, ranks=np.append(others[kept], found.count), lower_bound_from=bound)


def dense(counts: Mapping[int, int]) -> Int64:
    """Counts by bucket, from 0 on."""
    keys = np.array(list(counts), np.int64)
    return np.bincount(keys, np.array(list(counts.values()), np.float64)).astype(np.int64)


def more(one: Int64, other: Int64) -> Int64:
    """The counts of both."""
    size = max(len(one), len(other))
    total: Int64 = np.pad(one, (0, size - len(one))) + np.pad(other, (0, size - len(other)))
    return total


def less(one: Int64, other: Int64) -> Int64:
    """The counts of one that are not of the other."""
    return np.maximum(more(one, -other), 0)
