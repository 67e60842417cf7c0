"""Checks records that were read back against what workers report, part after part. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.record import ENDINGS, OUTCOMES
from inference_benchmarker.records.user_metrics import MOST_VALUE, PREFIX
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Int64, Records

LONGEST_NS = 3 * MAX_SECONDS * NS  # warm-up, wave and drain
MOST_COUNT = 1 << 53
_BOUNDS = {
    **dict.fromkeys(("due", "sent", "first_token", "first_answer", "last_token", "done"), (-LONGEST_NS, LONGEST_NS)),
    "index": (-MOST_COUNT, MOST_COUNT),
    **dict.fromkeys(("build_ns", "think_ns"), (0, LONGEST_NS)),
    **dict.fromkeys(("chunks", "tokens_in", "tokens_out", "bytes", "context_tokens"), (0, MOST_COUNT)),
}
_FOLLOWED = ("index", "turn", "attempt", "worker", "due", "done", "think_ns")
_CLOSED_SETS = {"outcome": OUTCOMES, "ended": ENDINGS}


class RecordsCheck:
    """Takes the parts of a wave's records in their order; ValueError for the first that no workers report.

    ``warmup``: the number of rows so far that are the warm-up's. ``last_index`` and ``last_worker``: the greatest.
    ``by_worker``: for each outcome, how many requests of the window each worker has. ``sessions``: for each way in
    which a session ends, how many of each worker's did; and as ``later_turns`` its turns after their first ones.
    """

    def __init__(self) -> None:
        self.warmup = 0
        self.by_worker: dict[str, Counter[int]] = {name: Counter() for name in OUTCOMES}
        self.sessions: dict[str, Counter[int]] = {name: Counter() for name in (*ENDINGS, "later_turns")}
        self.last_index = -MOST_COUNT
        self.last_worker = 0
        self._before: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in _FOLLOWED}

    def take(self, part: Records) -> None:
        """Check the next part against bounds and against the row before it."""
        if not len(part):
            return
        _check_values(part)
        _check_instants(part)
        _check_sessions(part)
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
            _add(counts, workers[in_window & part.outcome(outcome)])
        if not part.lacks("turn"):
            for ending in ENDINGS:
                _add(self.sessions[ending], workers[in_window & part.named("ended", ending)])
            _add(self.sessions["later_turns"], workers[in_window & part.later_turns & ~part.repeats])


def _add(counts: Counter[int], workers: Int64) -> None:
    numbers, sizes = np.unique(workers, return_counts=True)
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
        of_rows = part.metric(name)[part.has(PREFIX + name)]
        if not (np.abs(of_rows) <= MOST_VALUE).all():
            raise ValueError(f"{PREFIX}{name} is not a number within ±{MOST_VALUE:g}")
    for name in ("label", "outcome", "error", "finish_reason", "ended"):
        codes, names = part.coded(name)
        if None in names or (name == "outcome" and not (codes >= 0).all()):
            raise ValueError(f"{name} is missing")
    for name, known in _CLOSED_SETS.items():
        if strange := set(part.coded(name)[1]) - {*known, ""}:
            raise ValueError(f"{name} is {quoted(str(strange.pop()), 40)}")


def _check_sessions(part: Records) -> None:
    """All requests are a session's or none; a session is its arrival, and ends with its last request."""
    if part.lacks("turn"):
        if not all(part.lacks(name) for name in ("session", "think_ns", "ended", "context_tokens")):
            raise ValueError("a request of a session has no turn")
        return
    if not part.int("turn").all() or not np.array_equal(part.int("session"), part.int("index")):
        raise ValueError("a request is of no session, or of another than its arrival")
    over = part.has("ended")
    if (over[:-1] & (np.diff(part.int("index")) == 0)).any():
        raise ValueError("a session goes on after its end")
    if (part.has("think_ns") != (part.later_turns & ~part.repeats)).any():
        raise ValueError("a user thought before a turn that follows none, or before none that follows one")
    for ending, outcome in (("completed", "ok"), ("failed", "failed")):
        if (part.named("ended", ending) & ~part.outcome(outcome)).any():
            raise ValueError(f"a session {ending} with a turn that is not {outcome}")
    if (over & part.outcome("abandoned")).any():
        raise ValueError("a session ended with a turn that was abandoned")


def _check_instants(part: Records) -> None:
    """A request is sent, brings its first and its last token, and is done, in this order."""
    before, earlier = "sent", part.int("sent")
    for name in ("first_token", "first_answer", "last_token", "done"):
        if part.lacks(name):
            continue
        later, present = part.int(name), part.has(name)
        if (later < earlier)[present].any():
            place = int(np.flatnonzero((later < earlier) & present)[0])
            raise ValueError(f"{name} of arrival {int(part.int('index')[place]):,} lies before its {before}")
        before, earlier = name, np.where(present, later, earlier)


def _check_order(rows: dict[str, Int64], known: int) -> None:
    """Arrivals go up, and of one its turns, of one worker; a further attempt follows the one before it.

    Each was due when the one before it was over, or later: a turn when its user had thought. ``known``: the number of
    rows that were found in order before, 0 or 1.
    """
    turn, attempt, steps = rows["turn"], rows["attempt"], np.diff(rows["index"])
    if (steps < 0).any():
        raise ValueError("the requests are not in the order of their arrivals")
    again = np.flatnonzero(steps == 0) + 1
    begins = np.setdiff1d(np.arange(known, len(turn)), again, assume_unique=True)
    turns = turn[again] - turn[again - 1]
    repeats, later = again[turns == 0], again[turns == 1]
    if not attempt[repeats].all():
        raise ValueError("an arrival has two first attempts")
    if (turn[begins] > 1).any() or len(repeats) + len(later) < len(again):
        raise ValueError("a turn does not follow the one before it")
    if attempt[begins].any() or attempt[later].any() or (attempt[repeats] - attempt[repeats - 1] != 1).any():
        raise ValueError("an attempt does not follow the one before it")
    if (rows["worker"][again] != rows["worker"][again - 1]).any():
        raise ValueError("an attempt does not follow the one before it, which another worker made")
    if (rows["due"][again] < rows["done"][again - 1]).any():
        raise ValueError("an attempt was due before the one before it was over")
    waited = rows["due"][later] - rows["done"][later - 1]
    if not np.array_equal(waited, rows["think_ns"][later]):
        raise ValueError("a turn was not due when its user had thought")
