"""Watches a running wave for what ends it early: a condition of ``--abort-on``, or an endpoint that is dead. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.records.feed import KEPT_S
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.units import NS
from inference_benchmarker.verdict.aborts import DEAD_S
from inference_benchmarker.verdict.error_kinds import NO_CONNECTION

if TYPE_CHECKING:
    from inference_benchmarker.plan.abort_on import AbortOn
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.records.feed import Feed

_EXTREMES = {"min": 0.0, "max": 100.0}


class AbortWatch:
    """Goes by what the workers reported of whole seconds of the window; the warm-up counts for nothing."""

    def __init__(self, plan: WavePlan) -> None:
        self._conditions = plan.abort_on
        self._ends_dead = plan.abort
        self._open_loop = isinstance(plan.load, OpenLoop)
        self._judged_s = 0

    def look(self, feed: Feed, whole_s: int) -> Aborted | None:
        """Tells what ends the wave, if anything does; the feed knows so many whole seconds."""
        if self._ends_dead and (dead := dead_endpoint(feed, whole_s)):
            return dead
        if whole_s <= self._judged_s:
            return None
        self._judged_s = whole_s
        met = (self._met(each, feed, whole_s) for each in self._conditions if each.over_s <= whole_s)
        return next(filter(None, met), None)

    def _met(self, abort_on: AbortOn, feed: Feed, stop: int) -> Aborted | None:
        condition, start = abort_on.condition, stop - abort_on.over_s
        if condition.metric == "success":
            measured, requests = _success(feed, start, stop)
        else:
            times = _times(condition, feed, start, stop, self._metric(condition))
            measured, requests = _statistic(times, condition.stat), times.count
        if not condition.met(measured):
            return None
        return Aborted(abort_on.text, measured, requests, abort_on.over_s)

    def _metric(self, condition: Slo) -> str:
        if condition.metric != "default":
            return condition.metric
        return "response_time" if self._open_loop else "latency"


def dead_endpoint(feed: Feed, whole_s: int) -> Aborted | None:
    """An endpoint to which no connection stands: the latest requests that are over have all failed so.

    From the first of them to the last are at least ``DEAD_S``. Of both only the second is known.
    """
    first = last = None
    failed = 0
    for second in range(min(feed.newest, whole_s), max(feed.newest - KEPT_S, -1), -1):
        cell = feed.second(second)
        if cell.ok or cell.abandoned or not all(map(NO_CONNECTION.search, cell.failed)):
            break
        if cell.failed:
            last = second if last is None else last
            first, failed = second, failed + cell.errors
    if first is None or last is None or last - first <= DEAD_S:
        return None
    return Aborted("", None, failed, last - first)


def _success(feed: Feed, start: int, stop: int) -> tuple[float | None, int]:
    """The share of the requests that were over then; what is in flight is neither."""
    cells = [feed.second(second) for second in range(start, stop)]
    ok = sum(cell.ok for cell in cells)
    over = ok + sum(cell.abandoned + cell.errors for cell in cells)
    return (ok / over if over else None), over


def _times(condition: Slo, feed: Feed, start: int, stop: int, metric: str) -> Histogram:
    """The times of the requests that were over then, and of those in flight that became older than the limit then.

    These count with their age, taken from the middle of the second in which they were sent, so that an endpoint that
    answers nobody is found. TTFT and ITL are known when a stream is over: its age says nothing of them.
    """
    times = Histogram()
    for second in range(start, stop):
        if found := feed.second(second).times.get(metric):
            times.merge(found)
    if metric in ("latency", "response_time"):
        for sent, requests in feed.waiting.items():
            if start < sent + 1 + condition.limit <= stop:
                times.merge(_several((stop - sent) * NS - NS // 2, requests))
    return times


def _several(time_ns: int, number: int) -> Histogram:
    """A time that occurs several times."""
    return Histogram(dict.fromkeys(Histogram.of([time_ns]).counts, number))


def _statistic(times: Histogram, stat: str) -> float | None:
    if stat == "mean":
        return times.total_s / times.count if times.count else None
    return times.percentile(_EXTREMES[stat] if stat in _EXTREMES else float(stat[1:]))
