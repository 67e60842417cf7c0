"""The gains of counters and histograms between samples, resets as Prometheus has them, and what buckets show. Pure."""

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


def falls(rows: Sequence[Sequence[float]]) -> int:
    """Count the successive samples of counters of which any was below its value before."""
    return sum(any(b > n for b, n in zip(before, now, strict=True)) for before, now in pairwise(rows))


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
    """A value read off buckets; ``bound``: which side of it the truth lies on, where they show no more.

    ``bucket``: the bounds of the one within which it is interpolated.
    """

    value: float
    bound: Bound | None = None
    bucket: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Bin:
    """So many observations between two bounds, either of which may be infinite."""

    low: float
    high: float
    count: float


def bins_of(buckets: Buckets) -> list[Bin]:
    """Those of cumulative buckets, in their order; none where +Inf is missing: nobody knows how many there were."""
    if len(buckets) < 2 or buckets[-1][0] != math.inf:
        return []
    bounds, counts = [bound for bound, _ in buckets], _monotonic([count for _, count in buckets])
    pairs = zip(pairwise([-math.inf, *bounds]), pairwise([0.0, *counts]), strict=True)
    return [Bin(low, high, now - before) for (low, high), (before, now) in pairs]


def quantile(q: float, bins: Sequence[Bin]) -> Estimate | None:
    """The q-quantile: linear within a bin, as ``histogram_quantile`` has it, but nothing is invented at the ends.

    In a bin that reaches down to zero or below it is at most the upper bound, in one without an upper bound at least
    the lower one. None where nothing was observed.
    """
    rank = q * math.fsum(each.count for each in bins)
    below = 0.0
    for each in (filled := _filled(bins)):
        if below + each.count >= rank or each is filled[-1]:
            share = min((rank - below) / each.count, 1.0)
            value = each.low + (each.high - each.low) * share
            return _at_an_end(each) or Estimate(value, bucket=(each.low, each.high))
        below += each.count
    return None


def minimum(bins: Sequence[Bin]) -> Estimate | None:
    """The smallest observation lies in the first bin that has one."""
    return next((_at_an_end(each) or Estimate(each.low, "at_least") for each in _filled(bins)), None)


def maximum(bins: Sequence[Bin]) -> Estimate | None:
    """The largest observation lies in the last bin that has one."""
    last = next(reversed(_filled(bins)), None)
    if last is None:
        return None
    return Estimate(last.high, "at_most") if math.isfinite(last.high) else Estimate(last.low, "at_least")


def _filled(bins: Sequence[Bin]) -> list[Bin]:
    return [each for each in bins if each.count > 0]


def _at_an_end(each: Bin) -> Estimate | None:
    """The bound that is known of what lies in a bin at an end of the scale; None of any other."""
    if not math.isfinite(each.high):
        return Estimate(each.low, "at_least")
    return Estimate(each.high, "at_most") if each.low <= 0 <= each.high or not math.isfinite(each.low) else None


def _monotonic(counts: Sequence[float]) -> list[float]:
    """Buckets read at slightly different moments may disagree; a lower one never holds more than a higher one."""
    most, result = 0.0, []
    for count in counts:
        most = max(most, count)
        result.append(most)
    return result
