"""Counts to steer a search by while its wave runs: requests over a limit, and values of the user's own. Pure.

The live feed has no such values: they are taken from the workers' reports as they come in.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.batch import OUTCOME
from inference_benchmarker.records.record import OK
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.words.units import NS
from server_capacity.search.stretch import Count
from server_capacity.search.user_limits import Sums, judge_user

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from inference_benchmarker.plan.slo import RequestLimit
    from inference_benchmarker.records.columns import Floats, Int64
    from inference_benchmarker.records.feed import Cell
    from server_capacity.search.limits import Limit
    from server_capacity.search.user_limits import UserLimit


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
    histogram = cell.times.get(metric)
    if histogram is None or not histogram.count:
        return Count(0, 0)
    below = histogram.share_below(bound_s) or 0.0
    return Count(histogram.count, histogram.count - round(below * histogram.count))


class UserWatch:
    """Adds up what ok requests reported for each limit, by stretch and second in which they were due."""

    def __init__(self, limits: Sequence[UserLimit]) -> None:
        self._limits = limits
        self._scored: list[tuple[int, Int64, Floats]] = []
        self._sums: defaultdict[tuple[int, int], dict[int, Sums]] = defaultdict(dict)

    def take(self, rows: npt.NDArray[Any], values: npt.NDArray[Any], names: Sequence[str]) -> None:
        """Take in a worker's report: its requests, and their values by the numbers of these names."""
        of = rows[values["row"]]
        counts = (of["index"] >= 0) & (of["outcome"] & OUTCOME == OK)
        for place, limit in enumerate(self._limits):
            name = limit.metric.removeprefix(PREFIX)
            if name in names:
                mine = counts & (values["name"] == names.index(name))
                self._scored.append((place, of["due"][mine].astype(np.int64), limit.scores(values["value"][mine])))

    def sort(self, starts_s: Sequence[float]) -> None:
        """Add up what was taken in, now that it is known when the stretches began (seconds after wave start)."""
        starts = np.rint(np.array(starts_s) * NS).astype(np.int64)
        for place, due, scores in self._scored:
            stages = np.searchsorted(starts, due, "right") - 1
            for stage, second in {*zip(stages.tolist(), (due // NS).tolist(), strict=True)}:
                mine = scores[(stages == stage) & (due // NS == second)]
                sums = self._sums[place, stage]
                before = sums.get(second, Sums(0, 0.0, 0.0))
                sums[second] = Sums(
                    before.of + len(mine), before.total + float(mine.sum()), before.squares + float(mine @ mine)
                )
        self._scored.clear()

    def misses(self, stage: int) -> bool:
        """Tells whether a stretch surely misses a limit, as far as is known."""
        return any(
            judge_user(limit, list(self._sums[place, stage].values())) == "fails"
            for place, limit in enumerate(self._limits)
        )
