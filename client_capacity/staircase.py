"""An interval for the rate that is held half the time, from a series of levels that went up and down. Pure."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Z_975 = 1.959964


def staircase(levels: Sequence[float], factor: float) -> tuple[float, float, float]:
    """Low end, estimate and high end (95%) of the rate held half the time, from the levels of an up-and-down series.

    The method of Dixon and Mood (1948, J. Am. Stat. Assoc. 43: 109-126), with the estimate for short series of
    Brownlee, Hodges and Rosenblatt (1953, ibid. 48: 262-277): the mean of the levels without the first, with the
    one that would have come next; here of their logarithms, since steps are factors. The interval is Student's
    for that mean, and at least half a step to either side, which is as fine as the levels can tell.
    """
    logs = [math.log(level) for level in levels[1:]]
    mean = statistics.fmean(logs)
    spread = student_t_975(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    half = max(spread, math.log(factor) / 2)
    return rounded(math.exp(mean - half)), rounded(math.exp(mean)), rounded(math.exp(mean + half))


def student_t_975(freedom: int) -> float:
    """The 97.5% quantile of Student's t, for 3 degrees of freedom or more to 0.2%.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    z = Z_975
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))


def rounded(rate: float) -> float:
    """Four digits: finer than any step, and readable."""
    return float(f"{rate:.4g}")


def rate_text(rate: float) -> str:
    """A rate as it is printed, in four digits."""
    return f"{rounded(rate):,g}"
