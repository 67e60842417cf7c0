"""Searches for sessions on the simulated LLM engine: ``python -m tests.performance capacity-sessions --help``.

Six kinds of sessions and seven of single requests (``tests/simulated_sessions.py``); the truth is a line through long
runs near it.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import fmean, median

from server_capacity.experiments.measurements.windows import wilson
from tests.simulated_sessions import KINDS, searched, searched_as_queue, share_over

_HEAD = (
    f"{'sessions':21} truth  searches  coverage (95% interval)  low above    bias  half-width"
    "  differs (95% interval)  lower end above, after overload  both together contain it (95% interval)"
)
_NONE = (math.nan,) * 3


def _found(
    task: tuple[str, int], lengths: float | None = None, *, as_queue: bool = False
) -> tuple[str, int, str, float, float, float, float, float, str]:
    """A search: its kind, seed, outcome, rate and interval from below, and lower ends after overload; nan for none.

    At last "differs" where overload changed it, "same" where it did not, else "unknown".
    """
    name, seed = task
    search = searched_as_queue if as_queue else searched
    found = search(KINDS[name], seed, lengths).answer
    memory = found.memory
    below = found if memory is None else memory.below
    rate, low, high = (below.rate, below.interval.low, below.interval.high) if below.interval else _NONE
    lower = found.interval.low if found.interval else math.nan
    known = "unknown" if memory is None else "differs" if memory.differ else "same"
    return name, seed, found.outcome, rate or math.nan, low, high, lower, found.rate or math.nan, known


def truth_near(name: str, rate: float, seconds: int) -> tuple[float, float]:
    """The rate at which the share over is what is allowed, and its relative standard error, by a line of logarithms."""
    allowed, points = KINDS[name].limits[0].allowed, []
    for place, times in enumerate((0.92, 1.0, 1.08)):
        share, error = share_over(KINDS[name], 1000 + place, rate * times, seconds)
        print(f"  {name}: {rate * times:.4g}/s {share:.4%} ± {error:.4%}", flush=True)
        if share:
            points.append((math.log(rate * times), math.log(share), error / share))
    x, y = (fmean(point[axis] for point in points) for axis in (0, 1))
    slope = sum((a - x) * (b - y) for a, b, _ in points) / sum((a - x) ** 2 for a, _, _ in points)
    return math.exp(x + (math.log(allowed) - y) / slope), fmean(each for *_, each in points) / slope


def _table(rows: list[list[str]]) -> None:
    print(_HEAD)
    for name, kind in KINDS.items():
        found = [tuple(map(float, row[3:6])) for row in rows if row[0] == name]
        known, truth = [each for each in found if each[0] == each[0]], kind.truth
        if not known or not truth:
            continue
        covered, above = (sum(test) for test in zip(*((a <= truth <= b, a > truth) for _, a, b in known), strict=True))
        low, high = wilson(covered, len(known))
        half = median((b - a) / 2 for _, a, b in known) / truth
        bias = median(rate for rate, *_ in known) / truth - 1
        memory = [(row[8], float(row[6])) for row in rows if row[0] == name]
        differs, checked = (sum(each in words for each, _ in memory) for words in (["differs"], ["differs", "same"]))
        least, most = wilson(differs, checked) if checked else (0.0, 1.0)
        both = [(float(row[6]), float(row[5])) for row in rows if row[0] == name and row[6] != "nan"]
        within = sum(lower <= truth <= upper for lower, upper in both)
        fewest, all_of = wilson(within, len(both)) if both else (0.0, 1.0)
        print(
            f"{name:21} {truth:5.4g}  {len(found):8}  {covered / len(known):7.1%} ({low:.1%} to {high:.1%}) "
            f"{above / len(known):10.1%}  {bias:+.1%} {half:10.1%}  {differs} of {checked} ({least:.1%} to {most:.1%}) "
            f"{sum(lower > truth for _, lower in memory) / len(memory):6.1%}  {within} of {len(both)} "
            f"({fewest:.1%} to {all_of:.1%})"
        )


def main(arguments: list[str]) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity-sessions", description=__doc__)
    parser.add_argument("--searches", type=int, default=50, metavar="N", help="of each kind (default 50)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N", help="of the searches (default 0)")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS, metavar="KIND", help="these alone")
    parser.add_argument("--lengths", type=float, metavar="N", help="of a session alone (default: the command's time)")
    parser.add_argument("--as-queue", action="store_true", help="the search for a queue's saturation instead")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="at a time (default 2)")
    parser.add_argument("--results", metavar="FILE", help="append each search to this file, and go on where it ended")
    parser.add_argument("--most", type=float, default=math.inf, metavar="S", help="begin none after so many seconds")
    parser.add_argument(
        "--truths", type=int, metavar="S", help="measure the truths instead, in runs of so many seconds"
    )
    options = parser.parse_args(arguments)
    if options.truths:
        for name in options.kinds:
            near = KINDS[name].truth or searched(KINDS[name], 0).answer.rate or 1.0
            rate, error = truth_near(name, near, options.truths)
            print(f"{name:21} {rate:.4g}/s ± {error:.1%}", flush=True)
        return
    file = Path(options.results or "/dev/null")
    rows = list(csv.reader(file.read_text().splitlines())) if file.is_file() else []
    done, begun = {(row[0], int(row[1])) for row in rows}, time.monotonic()
    seeds = range(options.first_seed, options.first_seed + options.searches)
    search = partial(_found, lengths=options.lengths, as_queue=options.as_queue)
    tasks = [(name, seed) for seed in seeds for name in options.kinds if (name, seed) not in done]
    with ProcessPoolExecutor(options.processes) as pool, file.open("a") as lines:
        for place in range(0, len(tasks), options.processes):
            if time.monotonic() - begun > options.most:
                break
            for found in pool.map(search, tasks[place : place + options.processes]):
                csv.writer(lines).writerow(found)
                lines.flush()
                rows.append([str(each) for each in found])
    _table(rows)
