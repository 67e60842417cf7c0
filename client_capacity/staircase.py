"""An interval for the rate that is held half the time, from a series of levels that went up and down. Pure."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


def staircase(levels: Sequence[float], factor: float) -> tuple[float, float, float]:
    """Low end, estimate and high end (95%) of the rate held half the time, from the levels of an up-and-down series.

    The method of Dixon and Mood (1948, J. Am. Stat. Assoc. 43: 109-126), with the estimate for short series of
    Brownlee, Hodges and Rosenblatt (1953, ibid. 48: 262-277): the mean of the levels without the first, with the
    one that would have come next; here of their logarithms, since steps are factors. The interval is Student's
    for that mean, and at least half a step to either side, which is as fine as the levels can tell.
    """
    from inference_benchmarker.summary.statistics.student_t import (
        student_t,  # numpy; a search's flags are read without it
    )

    logs = [math.log(level) for level in levels[1:]]
    mean = statistics.fmean(logs)
    spread = student_t(CONFIDENCE, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    half = max(spread, math.log(factor) / 2)
    return rounded(math.exp(mean - half)), rounded(math.exp(mean)), rounded(math.exp(mean + half))


def rounded(rate: float) -> float:
    """Four digits: finer than any step, and readable."""
    return float(f"{rate:.4g}")


def rate_text(rate: float) -> str:
    """A rate as it is printed, in four digits."""
    return f"{rounded(rate):,g}"
