"""Searches in users of a simulated closed queue: ``python -m tests.performance capacity-users --help``.

4 exponential servers of 20 ms, users who think exponential times, p99 < 200 ms; the truth is a closed form.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import fmean, median

from server_capacity.search.settings import Settings
from tests.closed_queue import TRUTHS, searched

_HEAD = "think s  truth  searches  coverage  low above   bias  half-width"


def _found(think_s: float, seed: int) -> tuple[float, float, float]:
    """The number of users that a search finds, and its interval; all nan where it finds none."""
    found, _ = searched(seed, Settings(), think_s)
    if found.rate is None or found.interval is None:
        return (float("nan"),) * 3
    return found.rate, found.interval.low, found.interval.high


def main(arguments: list[str]) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity-users", description=__doc__)
    parser.add_argument("--searches", type=int, default=200, metavar="N", help="of each think time (default 200)")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="at a time (default 2)")
    options = parser.parse_args(arguments)
    print(_HEAD)
    with ProcessPoolExecutor(options.processes) as pool:
        for think_s, truth in TRUTHS.items():
            rows = list(pool.map(partial(_found, think_s), range(options.searches)))
            covered = sum(low <= truth <= high for _, low, high in rows) / len(rows)
            above = sum(low > truth for _, low, _ in rows) / len(rows)
            known = [row for row in rows if row[0] == row[0]]
            bias = fmean(users for users, _, _ in known) / truth - 1
            half = median((high - low) / 2 for _, low, high in known) / truth
            print(
                f"{think_s:7g} {truth:6} {len(rows):9} {covered:9.1%} {above:10.1%} {bias:+6.1%} {half:11.1%}",
                flush=True,
            )
