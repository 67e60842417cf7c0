"""The value that a limit is on while the wave runs, as far as the live feed has it. Pure.

Whoever shows a limit and whoever ends the wave for one ask here. Values that the feed does not have (goodput, metrics
of the user's own) are known when the wave is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.records.feed import Cell, Feed

_EXTREMES = {"min": 0.0, "max": 100.0}
_GROWS_OLDER = ("latency", "response_time")


def value_so_far(
    limit: Slo, cells: Sequence[Cell], overdue: Histogram | None = None, *, open_loop: bool
) -> tuple[float | None, int]:
    """The value of a share of success or a time, and the number of requests that it is of.

    ``cells`` are those that count; ``overdue`` the ages of requests in flight that count, too. None where none counts.
    """
    if limit.metric == "success":
        return _success(cells)
    times = Histogram()
    for cell in cells:
        if found := cell.times.get(_metric(limit, open_loop=open_loop)):
            times.merge(found)
    times.merge(overdue or Histogram())
    return _statistic(times, limit.stat), times.count


def overdue_ages(limit: Slo, feed: Feed, stop: int, over_s: int | None = None, *, open_loop: bool) -> Histogram:
    """The ages at second ``stop`` of requests in flight that are older than the limit; ``over_s``: since at most then.

    So an endpoint that answers nobody is found. An age is from the middle of the second in which a request was sent.
    TTFT, ITL and TPOT are known when a stream is over: its age says nothing of them.
    """
    ages = Histogram()
    if _metric(limit, open_loop=open_loop) in _GROWS_OLDER:
        for sent, requests in feed.waiting.items():
            if 0 <= stop - (sent + 1 + limit.limit) < (stop + 1 if over_s is None else over_s):
                ages.merge(_several((stop - sent) * NS - NS // 2, requests))
    return ages


def _metric(limit: Slo, *, open_loop: bool) -> str:
    if limit.metric != "default":
        return limit.metric
    return "response_time" if open_loop else "latency"


def _success(cells: Sequence[Cell]) -> tuple[float | None, int]:
    """The share of the requests that are over; what is in flight is neither."""
    ok = sum(cell.ok for cell in cells)
    over = ok + sum(cell.abandoned + cell.errors for cell in cells)
    return (ok / over if over else None), over


def _several(time_ns: int, number: int) -> Histogram:
    """A time that occurs several times."""
    return Histogram(dict.fromkeys(Histogram.of([time_ns]).counts, number))


def _statistic(times: Histogram, stat: str) -> float | None:
    if not times.count:
        return None
    if stat == "mean":
        return times.total_s / times.count
    return times.percentile(_EXTREMES[stat] if stat in _EXTREMES else float(stat[1:]))
