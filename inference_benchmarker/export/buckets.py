"""Times in the buckets that are handed on: edges that people use in limits, close enough for quantiles. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from inference_benchmarker.records.histogram import value_of
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.records.histogram import Histogram

_STEPS = tuple(map(Decimal, "1 1.1 1.2 1.35 1.5 1.75 2 2.25 2.5 3 3.5 4 4.5 5 6 7 8 9".split()))  # noqa: SIM905
EDGES = (*(step.scaleb(tens) for tens in range(-5, 3) for step in _STEPS), Decimal(1000))
"""Upper ends of the buckets in seconds, 10 µs to 1,000 s; each is at most a fifth above the one before."""

EDGES_S = tuple(map(float, EDGES))
_EDGES_NS = tuple(int(edge * NS) for edge in EDGES)


@dataclass(frozen=True, slots=True)
class Buckets:
    """The number of times in each bucket, the last of which has no upper end; their sum, least and greatest."""

    counts: tuple[int, ...]
    total_s: float
    least_s: float
    most_s: float

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.counts)

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Each upper end with the number of times that are not above it; infinity last."""
        return zip((*EDGES_S, float("inf")), accumulate(self.counts), strict=True)


def buckets_of(histogram: Histogram) -> Buckets:
    """The times of a finer histogram; near an edge one is counted on either side, at most 1/128 of itself away."""
    counts = [0] * (len(EDGES) + 1)
    for bucket, count in histogram.counts.items():
        counts[_place(bucket)] += count
    ends = (min(histogram.counts), max(histogram.counts)) if histogram.counts else (0, 0)
    least_s, most_s = (value_of(bucket) / NS for bucket in ends)
    return Buckets(tuple(counts), histogram.total_s, least_s, most_s)


@cache
def _place(bucket: int) -> int:
    return bisect_left(_EDGES_NS, value_of(bucket))
