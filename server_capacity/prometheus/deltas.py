"""The gains of counters and histograms between samples: resets and quantiles as Prometheus has them. Pure."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def quantile(q: float, buckets: Buckets) -> float | None:
    """The q-quantile as ``histogram_quantile`` gives it: linear within a bucket, the first of which begins at 0.

    Beyond the last finite bound it is that bound. None where nothing was observed or +Inf is missing.
    """
    if len(buckets) < 2 or buckets[-1][0] != math.inf or not buckets[-1][1] > 0:
        return None
    bounds, counts = [bound for bound, _ in buckets], _monotonic([count for _, count in buckets])
    rank = q * counts[-1]
    found = next((index for index, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if found == len(counts) - 1:
        return bounds[-2]
    if found == 0 and bounds[0] <= 0:
        return bounds[0]
    start, below = (bounds[found - 1], counts[found - 1]) if found else (0.0, 0.0)
    inside = counts[found] - below
    return start + (bounds[found] - start) * ((rank - below) / inside) if inside > 0 else start


def beyond_last_bound(q: float, buckets: Buckets) -> bool:
    """Tells whether the quantile lies above the last finite bound, so that ``quantile`` is only a lower limit."""
    counts = _monotonic([count for _, count in buckets])
    return q * counts[-1] > counts[-2]


def _monotonic(counts: Sequence[float]) -> list[float]:
    """Buckets read at slightly different moments may disagree; a lower one never holds more than a higher one."""
    most, result = 0.0, []
    for count in counts:
        most = max(most, count)
        result.append(most)
    return result
