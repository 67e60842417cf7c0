"""Two tiers in one search, simulated: ``python -m tests.performance capacity-tiers [--searches N] [--time S]``.

The second tier's search begins with the stretches of the first one. Beside it a search of that tier alone: the load of
both, the interval's half-width, and how often it contains the truth, of which there is a closed form.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from server_capacity.search.settings import Settings
from tests.performance.capacity.driver import play
from tests.performance.capacity.endpoints import FOUR_EXPONENTIAL, Endpoint, success, times
from tests.performance.capacity.queues import Rules
from tests.performance.capacity.results import Result
from tests.performance.capacity.truths import closed_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit

_EIGHT, _ONE = Rules(8, 0.05, "exponential"), Rules(1, 0.01, "exponential")
PAIRS = {
    "1 x exponential 10 ms, p99 < 100 ms and p99 < 200 ms": (_ONE, times(99, 0.1), times(99, 0.2)),
    "4 x exponential 20 ms, p99 < 150 ms and p99 < 300 ms": (FOUR_EXPONENTIAL, times(99, 0.15), times(99, 0.3)),
    "8 x exponential 50 ms, p95 < 200 ms and p99 < 400 ms": (_EIGHT, times(95, 0.2), times(99, 0.4)),
    "4 x exponential 20 ms, p99 < 190 ms and p99 < 210 ms": (FOUR_EXPONENTIAL, times(99, 0.19), times(99, 0.21)),
}
_HEAD = "tiers, true rates                                               searches  load        contains it  half-width"


def _endpoint(rules: Rules, limit: Limit) -> Endpoint:
    made = Endpoint("", "", rules, (limit, success(0.95)))
    return replace(made, truth=closed_form(made))


def _three(first: Endpoint, second: Endpoint, seed: int, settings: Settings) -> tuple[Result, Result, Result]:
    """Of the first tier, of the second one after it, and of the second one alone."""
    one = play(first, settings, seed)
    after = play(second, settings, seed + 100_000, earlier=one.counted(second.limits))
    alone = play(second, settings, seed + 200_000)
    played = zip((first, second, second), (one, after, alone), strict=True)
    found = [Result.of("", seed, of.truth or 0.0, each.answer, load_s=each.load_s) for of, each in played]
    return found[0], found[1], found[2]


def _cells(results: Sequence[Result]) -> str:
    load, covers = fmean(each.load_s for each in results), fmean(each.covers for each in results)
    return f"{load:5.0f} s {covers:14.0%} {median(each.half / each.truth for each in results):11.1%}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity-tiers", description=__doc__)
    parser.add_argument("--searches", type=int, default=60, metavar="N", help="of each pair (default: 60)")
    parser.add_argument("--time", type=float, default=180.0, metavar="S", help="of load of each (default: 180)")
    options = parser.parse_args(arguments)
    print(_HEAD)
    for title, (rules, *limits) in PAIRS.items():
        first, second = (_endpoint(rules, limit) for limit in limits)
        made = [_three(first, second, seed, Settings(time_s=options.time)) for seed in range(options.searches)]
        print(f"{title}: {first.truth:.4g}/s, {second.truth:.4g}/s")
        for name, results in zip(("first", "second after it", "second alone"), zip(*made, strict=True), strict=True):
            print(f"  {name:60} {len(results):9} {_cells(results)}", flush=True)
