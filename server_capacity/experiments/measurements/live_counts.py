"""Of a second of the live feed, how many requests were over a limit: good enough to steer by. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.search.stretch import Count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.plan.slo import RequestLimit
    from inference_benchmarker.records.feed import Cell
    from server_capacity.search.limits import Limit

_OF_GAPS = {"tpot": "itl"}
"""The feed has no time per output token; gaps between tokens are near it."""


def counts_of(limit: Limit, cell: Cell, goodput: Sequence[RequestLimit]) -> Count:
    """Times are in buckets, so that one near the limit may be on the other side; of goodput it is the least."""
    answered = cell.ok + cell.abandoned + cell.errors
    if limit.metric == "success":
        return Count(answered, cell.abandoned + cell.errors)
    if limit.metric == "goodput":
        slow = max((_over(cell, each.metric, each.limit).over for each in goodput), default=0)
        return Count(answered, min(cell.abandoned + cell.errors + slow, answered))
    return _over(cell, limit.metric, limit.bound_s or 0.0)


def _over(cell: Cell, metric: str, bound_s: float) -> Count:
    histogram = cell.times.get(_OF_GAPS.get(metric, metric))
    if histogram is None or not histogram.count:
        return Count(0, 0)
    below = histogram.share_below(bound_s) or 0.0
    return Count(histogram.count, histogram.count - round(below * histogram.count))
