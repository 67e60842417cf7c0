"""Tests of random arrivals: rescaled by the area under the rate they must be those of a Poisson process of rate one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from inference_benchmarker.plan.stage import Stage

    Floats = NDArray[np.float64]

ANDERSON_DARLING_1_PERCENT = 1.959  # Stephens, in D'Agostino and Stephens: Goodness-of-fit techniques, 1986, table 4.14


def anderson_darling_exponential(gaps: Floats) -> float:
    """A squared against an exponential distribution whose mean is the sample's."""
    n = len(gaps)
    share = stats.expon.cdf(np.sort(gaps), scale=gaps.mean())
    rank = np.arange(1, n + 1)
    return float(-n - np.mean((2 * rank - 1) * (np.log(share) + np.log1p(-share[::-1]))))


def anderson_darling_limit(n: int) -> float:
    """What A squared of ``n`` exponential gaps exceeds in one of a hundred samples."""
    return ANDERSON_DARLING_1_PERCENT / (1 + 0.6 / n)


def rescaled(stages: Sequence[Stage], dues_ns: Sequence[int]) -> tuple[Floats, float]:
    """The area under the rate up to each instant and up to the end: the trapezium rule on the stages, in floats."""
    at = np.asarray(dues_ns, np.float64) / NS
    areas, start, total = np.zeros(len(at)), 0.0, 0.0
    for stage in stages:
        length, first, last = float(stage.duration_s), float(stage.from_rps), float(stage.to_rps)
        elapsed = np.clip(at - start, 0, length)
        areas += (2 * first + (last - first) * elapsed / length) / 2 * elapsed
        total += (first + last) / 2 * length
        start += length
    return areas, total


def p_values(stages: Sequence[Stage], dues_ns: Sequence[int]) -> tuple[float, float]:
    """Kolmogorov-Smirnov's of the rescaled times against a uniform and of their gaps against an exponential one."""
    areas, total = rescaled(stages, dues_ns)
    uniform = stats.kstest(areas / total, "uniform").pvalue
    return float(uniform), float(stats.kstest(np.diff(areas, prepend=0.0), "expon").pvalue)
