"""How often a single pause of a client makes a wave INVALID: ``python -m tests.performance.lateness [WAVES]``."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

from inference_benchmarker.verdict.client.lateness import Lateness, hold_ups
from inference_benchmarker.words.units import NS

LIMIT_S, LONGER_S, MOST_OF_WAVE = 0.005, 0.03, 0.08
SIZES, RATES = (10, 20, 50, 100, 300, 1_000), (10, 100, 1_000)
WAVES = 5_000


def invalid(size: int, rate: float, draw: np.random.Generator) -> tuple[bool, bool]:
    """Whether a wave with one pause is INVALID by the rule, and by its p99 alone."""
    due = np.cumsum(draw.exponential(1 / rate, size))
    pause = min(LIMIT_S + draw.exponential(LONGER_S), max(MOST_OF_WAVE * due[-1], LIMIT_S))
    ends = draw.uniform(0, due[-1]) + pause
    lag = np.where((due >= ends - pause) & (due < ends), ends - due, 0.0)
    late = lag > LIMIT_S
    pieces = hold_ups([((due[late] * NS).astype(np.int64), (lag[late] * NS).astype(np.int64))])
    found = Lateness(size, int(late.sum()), pieces, float(lag.max()))
    return found.is_steady, found.is_more_than_tolerated


def main(arguments: list[str]) -> None:
    """Print the shares of INVALID waves, by size and rate and in all."""
    waves = int(arguments[0]) if arguments else WAVES
    draw, found = np.random.default_rng(1), {}
    for size, rate in product(SIZES, RATES):
        found[size, rate] = np.mean([invalid(size, rate, draw) for _ in range(waves)], axis=0)
        print(
            f"{size:5} arrivals at {rate:5}/s: {found[size, rate][0]:.2%}, by the p99 alone {found[size, rate][1]:.1%}"
        )
    rule, p99 = np.mean(list(found.values()), axis=0)
    print(f"{waves * len(found):,} waves: {rule:.2%}, by the p99 alone {p99:.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
