"""The settings of a search. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inference_benchmarker.plan.load import Arrivals

USUAL_TIME_S = 180.0
LONGEST_TIME_S = 3600.0


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
