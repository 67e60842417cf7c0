"""Whether arrivals reach the server when the plan says: constant, Poisson and slow waves."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, between, exactly
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

SEED = "7"
# Anderson-Darling against an exponential of unknown mean, 1%: Stephens 1974, table 1, case 3.
CRITICAL_AT_1_PERCENT = 1.957
POISSON_RATE = 1000


def waved(rate: str, *flags: str) -> tuple[pd.DataFrame, measure.Wave, int]:
    """A wave against a 1 ms endpoint: records with stamps, the wave, how many requests the server saw."""
    with StampServer(delay_ms=1) as server:
        wave = measure.run(measure.HTTP, server.url, 100_000, "--client-rps", rate, *flags)
        log = server.log()
    return measure.arrivals(log, wave), wave, len(log)


def constant(seconds: float) -> list[Figure]:
    """1,000/s from two workers."""
    joined, _, _ = waved("1000", "--workers", "2", "--obs-time", f"{seconds:g}")
    error = measure.schedule_error_ms(joined)
    deviation = 100 * abs(measure.rate(joined) / 1000 - 1)
    return [
        Figure("1,000/s, 2 workers: schedule error p50", measure.percentile(error, 50), "ms", below(0.05)),
        Figure("1,000/s, 2 workers: schedule error p99", measure.percentile(error, 99), "ms", below(0.4)),
        Figure("1,000/s, 2 workers: schedule error max", float(error.max()), "ms"),
        Figure("1,000/s, 2 workers: gap CV", measure.gap_cv(joined["arrival"].to_numpy()), "", below(0.2)),
        Figure("1,000/s, 2 workers: rate off by", deviation, "%", below(0.01)),
    ]


def anderson_darling(gaps: NDArray[np.int64]) -> tuple[float, float]:
    """The statistic of the gaps against an exponential distribution, and what it may be at 1%."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about critical values, which stand here
        statistic = float(stats.anderson(gaps.astype(np.float64), "expon").statistic)
    return statistic, CRITICAL_AT_1_PERCENT / (1 + 0.6 / len(gaps))


def poisson(seconds: float) -> list[Figure]:
    """The same random arrivals from one to four workers."""
    found = []
    first: NDArray[np.int64] | None = None
    count = str(round(POISSON_RATE * seconds) + 1)
    flags = ("--arrivals", "poisson", "--seed", SEED, "--num-requests", count)
    for workers in range(1, 5):
        joined, wave, _ = waved(str(POISSON_RATE), *flags, "--workers", str(workers))
        due = wave.column("due")
        if first is None:
            first = due
            statistic, critical = anderson_darling(np.diff(due))
            found.append(Figure("Poisson 1,000/s: gap CV of the due times", measure.gap_cv(due)))
            found.append(Figure("Poisson 1,000/s: A-D statistic of due gaps", statistic, "", below(round(critical, 3))))
        cv = measure.gap_cv(joined["arrival"].to_numpy())
        same = float(np.array_equal(due, first))
        found += [
            Figure(f"Poisson 1,000/s, W={workers}: due times as with W=1", same, "", exactly(1)),
            Figure(f"Poisson 1,000/s, W={workers}: gap CV at the server", cv, "", between(0.95, 1.05)),
        ]
    return found


def slow(rate: str, seconds: float) -> list[Figure]:
    """A rate that no whole number of milliseconds divides: exact count, even gaps."""
    joined, wave, seen = waved(rate, "--workers", "2", "--obs-time", f"{seconds:g}")
    expected = math.ceil(Fraction(rate) * Fraction(f"{seconds:g}"))
    error = measure.schedule_error_ms(joined)
    return [
        Figure(f"{rate}/s for {seconds:g} s: requests sent", len(wave.requests), "", exactly(expected)),
        Figure(f"{rate}/s for {seconds:g} s: requests seen", seen, "", exactly(expected)),
        Figure(f"{rate}/s: gap CV", measure.gap_cv(joined["arrival"].to_numpy()), "", below(0.01)),
        Figure(f"{rate}/s: schedule error max", float(error.max()), "ms"),
    ]


def figures(seconds: float) -> list[Figure]:
    """All of it; slow waves are long enough for a few arrivals."""
    return constant(seconds) + poisson(seconds) + slow("0.5", max(seconds, 10)) + slow("7.3", seconds)


PROGRAM = Program("pacing at the server", figures, seconds=10, quick_seconds=3)

if __name__ == "__main__":
    PROGRAM.main()
