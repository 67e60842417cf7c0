"""The settings of a search, and how long one for sessions must be. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inference_benchmarker.plan.load import Arrivals

USUAL_TIME_S = 180.0
LONGEST_TIME_S = 3600.0
LEAST_LENGTHS, USUAL_LENGTHS = 40.0, 120.0
"""Of a session while few are open: growth and bisection take some thirty."""
RECOVERY_SHARE, RECOVERY_LENGTHS, RECOVERY_TIMES = 1 / 6, 72.0, 4 / 3
"""The last part of a search, if it has so many lengths, is for overload and the return; its most, where that fails."""
USUAL_HALF_WIDTH, OF_LENGTHS = 0.17, 100.0
"""Of the rate: the median of simulated searches of the usual length for sessions that are alike (``tests.performance
capacity-sessions``); of very unequal ones, or with a cache that is nearly full, it is about twice that.
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds of load (pauses are not load), rates in requests/s.

    ``precision``: the interval's width over its rate at which the search is over; with ``time_s`` whichever comes
    first. Without either: three minutes, and longer (an hour at most) where answers are slow.
    """

    arrivals: Arrivals = "poisson"
    time_s: float | None = None
    precision: float | None = None
    max_rps: float | None = None
    start_rps: float | None = None

    def load_s(self, answer_s: float) -> float:
        """The most load that a search may take, where a request takes ``answer_s``."""
        if self.time_s is not None:
            return self.time_s
        if self.precision is not None:
            return LONGEST_TIME_S
        return min(LONGEST_TIME_S, max(USUAL_TIME_S, 60.0 * answer_s))

    def times_of_sessions(self, session_s: float) -> SessionTimes:
        """The times of a search for sessions of that length."""
        load_s = self.load_s(session_s)
        if load_s < RECOVERY_LENGTHS * session_s:
            return SessionTimes(load_s, load_s)
        return SessionTimes((1 - RECOVERY_SHARE) * load_s, RECOVERY_TIMES * load_s)


@dataclass(frozen=True, slots=True)
class SessionTimes:
    """Of a search for sessions, seconds of load: its end from below; and its very end, later only after overload."""

    search_s: float
    most_s: float

    @property
    def recovers(self) -> bool:
        """Tells whether there is time for overload and the return."""
        return self.most_s > self.search_s


def time_for(session_s: float) -> float:
    """The seconds of load of a search that nobody gave a time: the usual length, or as much of it as an hour holds."""
    return min(max(USUAL_TIME_S, USUAL_LENGTHS * session_s), max(LONGEST_TIME_S, LEAST_LENGTHS * session_s))


def half_width(lengths: float) -> float:
    """Half the width of the interval to expect, over the rate, of so many session lengths without overload."""
    return USUAL_HALF_WIDTH * math.sqrt(OF_LENGTHS / max(lengths, 1.0))
