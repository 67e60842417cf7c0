"""Watches a running wave for what ends it early: a condition of ``--abort-on``, or an endpoint that is dead. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.records.feed import KEPT_S
from inference_benchmarker.summary.live_values import overdue_ages, value_so_far
from inference_benchmarker.verdict.aborts import DEAD_S
from inference_benchmarker.verdict.error_kinds import NO_CONNECTION

if TYPE_CHECKING:
    from inference_benchmarker.plan.abort_on import AbortOn
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.feed import Feed


class AbortJudge:
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
        condition, over_s = abort_on.condition, abort_on.over_s
        cells = [feed.second(second) for second in range(stop - over_s, stop)]
        overdue = overdue_ages(condition, feed, stop, over_s, open_loop=self._open_loop)
        measured, requests = value_so_far(condition, cells, overdue, open_loop=self._open_loop)
        if not condition.met(measured):
            return None
        return Aborted(abort_on.text, measured, requests, over_s)


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
