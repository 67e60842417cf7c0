"""The gains of counters and histograms between samples, resets as Prometheus has them, and what buckets tell. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.server_metric import Bound

Buckets = tuple[tuple[float, float], ...]
"""(upper bound, how many were at most that): cumulative, in the order of the bounds, the last one +Inf."""


def increase(values: Sequence[float]) -> float:
    """The gain of a counter over successive samples. A value below the one before it began again from zero."""
    return sum(now - before if now >= before else now for before, now in pairwise(values))


def bucket_increase(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The gain of each bucket over successive samples of them all; one bucket that fell is a reset of all."""
    gained = [0.0] * len(rows[0])
    for before, now in pairwise(rows):
        again = any(b > n for b, n in zip(before, now, strict=True))
        for index, (b, n) in enumerate(zip(before, now, strict=True)):
            gained[index] += n if again else n - b
    return tuple(gained)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value read off buckets; ``bound``: which side of it the truth lies on, where they tell no more."""

    value: float
    bound: Bound | None = None


def quantile(q: float, buckets: Buckets) -> Estimate | None:
    """The q-quantile: linear within a bucket, as ``histogram_quantile`` has it, but nothing is invented at the ends.

    In the first bucket it is at most that one's bound, in the last one at least the bound before it. None where nothing
    was observed or +Inf is missing.
    """
    if not _tell(buckets):
        return None
    bounds, counts = [bound for bound, _ in buckets], _monotonic([count for _, count in buckets])
    rank = q * counts[-1]
    found = next((index for index, count in enumerate(counts) if count >= rank and count > 0), len(counts) - 1)
    if found in (0, len(counts) - 1):
        return _at_the_ends(found, bounds)
    start, below = bounds[found - 1], counts[found - 1]
    return Estimate(start + (bounds[found] - start) * ((rank - below) / (counts[found] - below)))


def minimum(buckets: Buckets) -> Estimate | None:
    """The smallest observation lies in the first bucket that has one: above the bound before it."""
    if not _tell(buckets):
        return None
    bounds = [bound for bound, _ in buckets]
    found = next(index for index, (_, count) in enumerate(buckets) if count > 0)
    return Estimate(bounds[found - 1], "at_least") if found else _at_the_ends(0, bounds)


def maximum(buckets: Buckets) -> Estimate | None:
    """The largest observation lies in the last bucket that has one: up to its bound, if that is finite."""
    if not _tell(buckets):
        return None
    bounds, counts = [bound for bound, _ in buckets], _monotonic([count for _, count in buckets])
    found = counts.index(counts[-1])
    return Estimate(bounds[found], "at_most") if math.isfinite(bounds[found]) else _at_the_ends(found, bounds)


def _tell(buckets: Buckets) -> bool:
    return len(buckets) >= 2 and buckets[-1][0] == math.inf and buckets[-1][1] > 0


def _at_the_ends(found: int, bounds: Sequence[float]) -> Estimate:
    return Estimate(bounds[-2], "at_least") if found else Estimate(bounds[0], "at_most")


def _monotonic(counts: Sequence[float]) -> list[float]:
    """Buckets read at slightly different moments may disagree; a lower one never holds more than a higher one."""
    most, result = 0.0, []
    for count in counts:
        most = max(most, count)
        result.append(most)
    return result
