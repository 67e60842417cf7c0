"""The time that a search for sessions must have, by their length, and how wide its interval will be. Pure."""

from __future__ import annotations

import math

from server_capacity.search.settings import LONGEST_TIME_S, USUAL_TIME_S

LEAST_LENGTHS, USUAL_LENGTHS = 40.0, 100.0
"""Of a session while few are open: growth and bisection take some thirty."""
USUAL_HALF_WIDTH = 0.12
"""Of the rate: the median of simulated searches of the usual length (``tests.performance capacity-sessions``)."""


def time_for(session_s: float) -> float:
    """The seconds of load of a search that nobody gave a time: the usual length, or as much of it as an hour holds."""
    return min(max(USUAL_TIME_S, USUAL_LENGTHS * session_s), max(LONGEST_TIME_S, LEAST_LENGTHS * session_s))


def half_width(lengths: float) -> float:
    """Half the width of the interval to expect, over the rate, of a search of so many session lengths."""
    return USUAL_HALF_WIDTH * math.sqrt(USUAL_LENGTHS / max(lengths, 1.0))
