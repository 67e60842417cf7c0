"""Runs of one endpoint -> the load beyond which it answers no more. Pure.

The bend of a latency curve is no evidence of it: where a curve bends depends on the loads that were tried and on how
its axes are scaled. A load is marked only where runs beyond it show that more load brought no more answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_KEPT_UP = 0.96
_MORE = 1.05
_STEP = 1.25
_LEAST = 30  # requests


@dataclass(frozen=True, slots=True)
class Answered:
    """A run: its load (requests/s, or requests in flight), and the rate that it completed of what was scheduled.

    ``scheduled`` is None in a closed loop, where nothing is scheduled. ``sent``: its number of requests.
    """

    load: float
    completed: float
    scheduled: float | None
    sent: float

    @property
    def fell_behind(self) -> bool:
        """Completed less than 96% of the schedule, and less by three standard deviations of its number of requests."""
        if not self.scheduled:
            return False
        missing = 1 - self.completed / self.scheduled
        return missing > max(1 - _KEPT_UP, 3 / sqrt(max(self.sent, 1)))

    @property
    def noise(self) -> float:
        """Two standard deviations of a ratio of two such rates."""
        return 2 * sqrt(2 / max(self.sent, 1))


def knee_of(runs: Sequence[Answered]) -> int | None:
    """The place of the run at the knee: of the highest load with which the endpoint kept up; None where none is shown.

    Open loop: all runs up to it kept up with their schedule, and all beyond it fell behind. Closed loop: no run with
    more requests in flight, one of them with a quarter more, completed 5% more, and fewer in flight completed less.
    Each sent at least 30. Of the runs of one load, the one with the median rate counts. Three loads are needed.
    """
    places = sorted(range(len(runs)), key=lambda place: (runs[place].load, runs[place].completed))
    loads = [list(found) for _, found in groupby(places, key=lambda place: runs[place].load)]
    medians = [found[(len(found) - 1) // 2] for found in loads]
    if len(medians) < 3:
        return None
    ladder = [runs[place] for place in medians]
    found = (_open_knee if all(run.scheduled for run in ladder) else _closed_knee)(ladder)
    return None if found is None else medians[found]


def _open_knee(ladder: Sequence[Answered]) -> int | None:
    behind = [run.fell_behind for run in ladder]
    first = _first(ladder, lambda at: behind[at])
    return first - 1 if first and all(behind[first:]) else None


def _closed_knee(ladder: Sequence[Answered]) -> int | None:
    if min(run.sent for run in ladder) < _LEAST:
        return None
    found = _first(ladder, lambda at: _is_flat(ladder[at], ladder[at + 1 :]))
    return found or None  # at the first load already: where it began was not tried


def _is_flat(run: Answered, beyond: Sequence[Answered]) -> bool:
    """Tells whether none of those beyond completed more, and one of them would have, had it been able to."""
    far = any(other.load >= _STEP * run.load and other.load / run.load - 1 > 2 * other.noise for other in beyond)
    return far and all(other.completed <= run.completed * (_MORE + other.noise) for other in beyond)


def _first(ladder: Sequence[Answered], is_it: Callable[[int], bool]) -> int | None:
    return next((at for at in range(len(ladder)) if is_it(at)), None)
