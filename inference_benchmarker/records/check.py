"""Holds records that were read back against what workers report, part after part. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.metrics import MOST_VALUE, PREFIX
from inference_benchmarker.records.record import OUTCOMES
from inference_benchmarker.words.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Int64, Records

LONGEST_NS = 3 * MAX_SECONDS * NS  # warm-up, wave and drain
MOST_COUNT = 1 << 53
_BOUNDS = {
    **dict.fromkeys(("due", "sent", "first_token", "last_token", "done"), (-LONGEST_NS, LONGEST_NS)),
    "index": (-MOST_COUNT, MOST_COUNT),
    "build_ns": (0, LONGEST_NS),
    **dict.fromkeys(("chunks", "tokens_in", "tokens_out", "bytes"), (0, MOST_COUNT)),
}
_FOLLOWED = ("index", "attempt", "worker", "due", "done")


class RecordsCheck:
    """Takes the parts of a wave's records in their order; ValueError for the first that no workers report.

    ``warmup``: the number of rows so far that are the warm-up's. ``last_index`` and ``last_worker``: the greatest.
    ``by_worker``: for each outcome, how many requests of the window each worker has.
    """

    def __init__(self) -> None:
        self.warmup = 0
        self.by_worker: dict[str, Counter[int]] = {outcome: Counter() for outcome in OUTCOMES}
        self.last_index = -MOST_COUNT
        self.last_worker = 0
        self._before: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in _FOLLOWED}

    def take(self, part: Records) -> None:
        """Hold the next part against bounds and against the row before it."""
        if not len(part):
            return
        _check_values(part)
        _check_instants(part)
        followed = {name: np.append(self._before[name], part.int(name)) for name in _FOLLOWED}
        _check_order(followed, len(self._before["index"]))
        self._before = {name: values[-1:] for name, values in followed.items()}
        self.warmup += int(np.count_nonzero(part.int("index") < 0))
        self.last_index = int(part.int("index")[-1])
        self.last_worker = max(self.last_worker, int(part.int("worker").max()))
        self._count(part)

    def _count(self, part: Records) -> None:
        in_window, workers = part.int("index") >= 0, part.int("worker")
        for outcome, counts in self.by_worker.items():
            numbers, sizes = np.unique(workers[in_window & part.outcome(outcome)], return_counts=True)
            counts.update(dict(zip(numbers.tolist(), sizes.tolist(), strict=True)))


def _check_values(part: Records) -> None:
    """An instant of no wave, a count below zero, a name that is none."""
    for name, (least, most) in _BOUNDS.items():
        if part.lacks(name):
            continue
        values = part.int(name)  # null is 0, which is within all bounds
        low, high = int(values.min()), int(values.max())
        if not least <= low <= high <= most:
            raise ValueError(f"{name} is from {low} to {high}")
    for name in part.metrics:
        told = part.metric(name)[part.has(PREFIX + name)]
        if not (np.abs(told) <= MOST_VALUE).all():
            raise ValueError(f"{PREFIX}{name} is no number within ±{MOST_VALUE:g}")
    for name in ("label", "outcome", "error", "finish_reason"):
        codes, names = part.coded(name)
        if None in names or (name == "outcome" and not (codes >= 0).all()):
            raise ValueError(f"{name} is missing")
    if strange := set(part.coded("outcome")[1]) - set(OUTCOMES):
        raise ValueError(f"an outcome is {str(strange.pop())[:40]!r}")


def _check_instants(part: Records) -> None:
    """A request is sent, brings its first and its last token, and is done, in this order."""
    before, earlier = "sent", part.int("sent")
    for name in ("first_token", "last_token", "done"):
        if part.lacks(name):
            continue
        later, told = part.int(name), part.has(name)
        if (later < earlier)[told].any():
            place = int(np.flatnonzero((later < earlier) & told)[0])
            raise ValueError(f"{name} of arrival {int(part.int('index')[place]):,} lies before its {before}")
        before, earlier = name, np.where(told, later, earlier)


def _check_order(rows: dict[str, Int64], known: int) -> None:
    """Arrivals go up; a further attempt follows the one before it, of the same arrival and worker, and was due later.

    ``known``: the number of rows that were found in order before.
    """
    steps = np.diff(rows["index"])
    if (steps < 0).any():
        raise ValueError("the requests are not in the order of their arrivals")
    repeats = np.flatnonzero(rows["attempt"][known:]) + known
    again = np.flatnonzero(steps == 0) + 1
    if not rows["attempt"][again].all():
        raise ValueError("an arrival has two first attempts")
    if not np.array_equal(again, repeats):
        raise ValueError("an attempt does not follow the one before it")
    for name, step in (("worker", 0), ("attempt", 1)):
        if (rows[name][again] - rows[name][again - 1] != step).any():
            raise ValueError("an attempt does not follow the one before it")
    if (rows["due"][again] < rows["done"][again - 1]).any():
        raise ValueError("an attempt was due before the one before it was over")
