"""Two tiers in one search, simulated: ``python -m tests.performance capacity-tiers [--in users] [--searches N]``.

The second tier's search begins with the stretches of the first one. Beside it a search of that tier alone: the load of
both, the interval's half-width, and how often it contains the truth, of which there is a closed form. Of sessions on
the simulated LLM engine (``tests/simulated_sessions.py``) the truth is a line through long runs near it, and intervals
are those from below.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING

from server_capacity.experiments.capacity.tiers import as_known
from server_capacity.experiments.measurements.question import SessionShape
from server_capacity.search.settings import Settings
from tests.explorations import question
from tests.performance.capacity.driver import play
from tests.performance.capacity.endpoints import FOUR_EXPONENTIAL, Endpoint, success, times
from tests.performance.capacity.queues import Rules
from tests.performance.capacity.results import Result
from tests.performance.capacity.truths import closed_form
from tests.simulated_sessions import KINDS, searched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from server_capacity.search.limits import Limit
    from tests.simulated_sessions import Kind, Searched

    Three = tuple[Result, Result, Result]

_EIGHT, _ONE = Rules(8, 0.05, "exponential"), Rules(1, 0.01, "exponential")
PAIRS = {
    "1 x exponential 10 ms, p99 < 100 ms and p99 < 200 ms": (_ONE, times(99, 0.1), times(99, 0.2)),
    "4 x exponential 20 ms, p99 < 150 ms and p99 < 300 ms": (FOUR_EXPONENTIAL, times(99, 0.15), times(99, 0.3)),
    "8 x exponential 50 ms, p95 < 200 ms and p99 < 400 ms": (_EIGHT, times(95, 0.2), times(99, 0.4)),
    "4 x exponential 20 ms, p99 < 190 ms and p99 < 210 ms": (FOUR_EXPONENTIAL, times(99, 0.19), times(99, 0.21)),
}
PAIRS_OF_SESSIONS = (
    ("short chat", "latency.p95<5s", "latency.p95<6s"),
    ("short chat", "latency.p95<4s", "latency.p95<6s"),
)
TRUTHS = {
    "sessions": {"latency.p95<4s": 0.686, "latency.p95<5s": 1.058, "latency.p95<6s": 1.346},
    "users": {"latency.p95<4s": 14.7, "latency.p95<5s": 24.3, "latency.p95<6s": 33.6},
}
"""Sessions/s, and open sessions, at which 5% of the turns of a short chat are over, in runs of 12,000 to 40,000 s."""
_HEAD = "tiers, true rates                                               searches  load        contains it  half-width"
_OF_SESSIONS = replace(question(), sessions=SessionShape(1.0))


def _endpoint(rules: Rules, limit: Limit) -> Endpoint:
    made = Endpoint("", "", rules, (limit, success(0.95)))
    return replace(made, truth=closed_form(made))


def _three(first: Endpoint, second: Endpoint, settings: Settings, seed: int) -> Three:
    """Of the first tier, of the second one after it, and of the second one alone."""
    one = play(first, settings, seed)
    after = play(second, settings, seed + 100_000, earlier=one.counted(second.limits))
    alone = play(second, settings, seed + 200_000)
    played = zip((first, second, second), (one, after, alone), strict=True)
    found = [Result.of("", seed, of.truth or 0.0, each.answer, load_s=each.load_s) for of, each in played]
    return found[0], found[1], found[2]


def _three_of_sessions(first: Kind, second: Kind, seed: int, *, in_users: bool) -> Three:
    """The same of sessions; the first ones are sent once for both tiers."""
    search = partial(searched, in_users=in_users)
    one = search(first, seed)
    earlier = [as_known(each, _OF_SESSIONS) for each in one.counted(second.limits)]
    after = search(second, seed + 100_000, session_s=one.session_s, earlier=earlier)
    alone = search(second, seed + 200_000)
    return _from_below(first, one), _from_below(second, after), _from_below(second, alone)


def _from_below(kind: Kind, found: Searched) -> Result:
    below = found.answer if found.answer.memory is None else found.answer.memory.below
    answer = replace(found.answer, rate=below.rate, interval=below.interval)
    load_s = sum(each.seconds for each in found.counted(kind.limits) if each.rate > 0)
    return Result.of("", 0, kind.truth, answer, load_s=load_s)


def _cells(results: Sequence[Result]) -> str:
    load, covers = fmean(each.load_s for each in results), fmean(each.covers for each in results)
    above = sum(each.too_high for each in results)
    half = median(each.half / each.truth for each in results)
    return f"{load:5.0f} s {covers:14.0%} {half:11.1%}  {above} with the lower end above it"


def _of_requests(time_s: float) -> dict[str, Callable[[int], Three]]:
    pairs = {title: [_endpoint(rules, limit) for limit in limits] for title, (rules, *limits) in PAIRS.items()}
    return {
        f"{title}: {first.truth:.4g}/s, {second.truth:.4g}/s": partial(_three, first, second, Settings(time_s=time_s))
        for title, (first, second) in pairs.items()
    }


def _of_sessions(unit: str) -> dict[str, Callable[[int], Three]]:
    found: dict[str, Callable[[int], Three]] = {}
    for name, *slos in PAIRS_OF_SESSIONS:
        first, second = (replace(KINDS[name], slo=slo, truth=TRUTHS[unit][slo]) for slo in slos)
        title = f"{name}, {first.slo} and {second.slo}: {first.truth:.4g} and {second.truth:.4g} {unit}"
        found[title] = partial(_three_of_sessions, first, second, in_users=unit == "users")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity-tiers", description=__doc__)
    parser.add_argument("--in", dest="unit", default="requests", choices=("requests", *TRUTHS), help="what is searched")
    parser.add_argument("--searches", type=int, default=60, metavar="N", help="of each pair (default: 60)")
    parser.add_argument(
        "--time", type=float, default=180.0, metavar="S", help="of load of each search of requests (default: 180)"
    )
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="at a time (default 2)")
    options = parser.parse_args(arguments)
    print(_HEAD)
    pairs = _of_requests(options.time) if options.unit == "requests" else _of_sessions(options.unit)
    with ProcessPoolExecutor(options.processes) as pool:
        for title, search in pairs.items():
            made = list(pool.map(search, range(options.searches)))
            print(title)
            names = ("first", "second after it", "second alone")
            for name, results in zip(names, zip(*made, strict=True), strict=True):
                print(f"  {name:60} {len(results):9} {_cells(results)}", flush=True)
