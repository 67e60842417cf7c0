"""Times in the buckets that are handed on: edges that people use in limits, close enough for quantiles. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING

from inference_benchmarker.records.histogram import value_of
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.records.histogram import Histogram


def _edges(steps: str) -> tuple[float, ...]:
    """10 µs to 1,000 s, with these steps in each power of ten."""
    exact = (Decimal(step).scaleb(tens) for tens in range(-5, 3) for step in steps.split())
    return (*map(float, exact), 1000.0)


EDGES_S = _edges("1 1.1 1.2 1.35 1.5 1.75 2 2.25 2.5 3 3.5 4 4.5 5 6 7 8 9")
"""Upper ends of the buckets in seconds; each is at most a fifth above the one before."""

COARSE_S = _edges("1 1.5 2 3 4 5 7")
"""Upper ends where there are many series; each is at most half above the one before."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The number of values in each bucket, the last of which has no upper end; their sum, least and greatest.

    Values are seconds, but for a user's own: those are all in the last bucket, as nobody knows what they are.
    """

    counts: tuple[int, ...]
    total: float
    least: float
    most: float
    edges: tuple[float, ...] = EDGES_S

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.counts)

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Each upper end with the number of times that are not above it; infinity last."""
        return zip((*self.edges, float("inf")), accumulate(self.counts), strict=True)


def buckets_of(histogram: Histogram, edges: tuple[float, ...] = EDGES_S) -> Buckets:
    """The times of a finer histogram; near an edge one is counted on either side, at most 1/128 of itself away."""
    counts = [0] * (len(edges) + 1)
    for bucket, count in histogram.counts.items():
        counts[bisect_left(edges, value_of(bucket) / NS)] += count
    ends = (min(histogram.counts), max(histogram.counts)) if histogram.counts else (0, 0)
    least, most = (value_of(bucket) / NS for bucket in ends)
    return Buckets(tuple(counts), histogram.total_s, least, most, edges)
