"""Many searches of endpoints whose capacity is known: ``python -m tests.performance capacity --help``.

Of each: coverage of the 95% interval, the lower end above the truth, the bias over the half-width, the median interval
score against an oracle's. Each result is a line of JSON in ``--results``; what is there already is not made again.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from server_capacity.search.settings import Settings
from tests.performance.capacity.driver import Feed, play
from tests.performance.capacity.endpoints import ENDPOINTS, Endpoint
from tests.performance.capacity.oracle import interval_score, oracle
from tests.performance.capacity.truths import of_family

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SIX = ("exact", "exponential", "single", "lognormal", "refusing", "batcher")


@dataclass(frozen=True, slots=True)
class Result:
    """One search. Rates in requests/s; ``low`` and ``high`` None where it gave no interval."""

    endpoint: str
    seed: int
    truth: float
    outcome: str
    rate: float | None
    low: float | None
    high: float | None
    score: float | None
    load_s: float
    python_s: float

    @property
    def covers(self) -> bool:
        """The interval contains the truth."""
        return self.low is not None and self.high is not None and self.low <= self.truth <= self.high


@dataclass(frozen=True, slots=True)
class Task:
    """One search to make."""

    endpoint: Endpoint
    seed: int
    settings: Settings
    feed: Feed


def made(task: Task) -> Result:
    """The result of one search."""
    endpoint = task.endpoint
    truth = endpoint.truth
    assert truth is not None
    played = play(endpoint, task.settings, task.seed, task.feed)
    answer, interval = played.answer, played.answer.interval
    return Result(
        endpoint.name,
        task.seed,
        truth,
        answer.outcome,
        answer.rate,
        interval.low if interval else None,
        interval.high if interval else None,
        interval_score(interval, truth) if interval else None,
        round(played.load_s, 2),
        round(played.python_s, 5),
    )


def summary(results: Sequence[Result], reference: float | None) -> str:
    """A line of the table; ``reference``: the oracle's median score."""
    count = len(results)
    found = [result for result in results if result.low is not None and result.high is not None]
    covers = sum(result.covers for result in results) / count
    too_high = sum(result.low > result.truth for result in found if result.low is not None) / count
    scores = sorted(result.score if result.score is not None else float("inf") for result in results)
    errors = [(result.rate or 0.0) - result.truth for result in found]
    halves = [(result.high - result.low) / 2 for result in found if result.high is not None and result.low is not None]
    half = statistics.median(halves) if halves else float("nan")
    bias = (statistics.fmean(errors) / half, statistics.median(errors) / half) if errors and half else (0.0, 0.0)
    score = scores[count // 2]
    truth = statistics.median(result.truth for result in results)
    cells = [
        f"{results[0].endpoint:>14}",
        f"{count:5d}",
        f"{100 * covers:6.1f}%",
        f"{100 * too_high:6.1f}%",
        f"{score / reference:6.2f}" if reference else "     -",
        f"{bias[0]:+6.2f}",
        f"{bias[1]:+6.2f}",
        f"{100 * half / truth:6.1f}%",
        f"{count - len(found):6d}",
        f"{statistics.fmean(result.load_s for result in results):6.0f}",
        f"{1e3 * statistics.fmean(result.python_s for result in results):6.0f}",
    ]
    return " ".join(cells)


HEAD = "      endpoint    of  covers  low>tr score/  bias:  median  half-    no    load  Python\n" + (
    "                                          oracle   mean          width interv.   s      ms"
)


def family_summary(results: Sequence[Result]) -> str:
    """A line of the table for endpoints of many kinds, of which each error is in units of its own half-width."""
    found = [result for result in results if result.low is not None and result.high is not None]
    halves = [(result.high - result.low) / 2 for result in found if result.high and result.low is not None]
    misses = [
        ((result.rate or 0.0) - result.truth) / max(half, 1e-9) for result, half in zip(found, halves, strict=False)
    ]
    covers = sum(result.covers for result in results) / len(results)
    too_high = sum(result.low > result.truth for result in found if result.low is not None) / len(results)
    return (
        f"family of {len(results)}: covers {100 * covers:.1f}%, lower end above {100 * too_high:.1f}%, "
        f"no interval {len(results) - len(found)}, bias/half-width median {statistics.median(misses):+.2f}"
    )


def all_results(tasks: Iterable[Task], kept: Path | None, processes: int) -> list[Result]:
    """Of all tasks, in order; those in the file ``kept`` are taken from there, the others added to it."""
    known: dict[tuple[str, int], Result] = {}
    if kept is not None and kept.exists():
        for line in kept.read_text().splitlines():
            result = Result(**json.loads(line))
            known[result.endpoint, result.seed] = result
    tasks = list(tasks)
    todo = [task for task in tasks if (task.endpoint.name, task.seed) not in known]
    for result in _made(todo, processes):
        known[result.endpoint, result.seed] = result
        if kept is not None:
            with kept.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    return [known[task.endpoint.name, task.seed] for task in tasks]


def _made(tasks: Sequence[Task], processes: int) -> Iterable[Result]:
    if processes == 1:
        yield from map(made, tasks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(made, tasks, chunksize=8)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity", description=__doc__)
    parser.add_argument("--endpoint", action="append", choices=list(ENDPOINTS), help="default: the six")
    parser.add_argument("--family", type=int, default=0, metavar="N", help="N random endpoints, one search each")
    parser.add_argument("--searches", type=int, default=300, metavar="N", help="of each endpoint (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="the first search's; the next has the next")
    parser.add_argument("--time", type=float, default=180.0, metavar="S", help="of load (default: 180)")
    parser.add_argument("--constant", action="store_true", help="even arrivals")
    parser.add_argument("--feed-delay", type=float, default=1.0, metavar="S", help="until an answer is known")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument("--misses", action="store_true", help="list each interval without the truth")
    parser.add_argument("--results", type=Path, metavar="FILE", help="a line of JSON for each search")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """The table, printed."""
    options = _options(arguments)
    settings = Settings(arrivals="constant" if options.constant else "poisson", time_s=options.time)
    feed = Feed(delay_s=options.feed_delay)
    if options.family:
        drawn = [of_family(seed) for seed in range(options.seed, options.seed + options.family)]
        tasks = [Task(endpoint, options.seed, settings, feed) for endpoint in drawn if endpoint.truth != float("inf")]
        results = all_results(tasks, options.results, options.processes)
        print(family_summary(results))
        _print_misses(results if options.misses else ())
        return
    print(HEAD)
    for name in options.endpoint or SIX:
        endpoint = replace(ENDPOINTS[name], arrivals=settings.arrivals)
        seeds = range(options.seed, options.seed + options.searches)
        results = all_results(
            (Task(endpoint, seed, settings, feed) for seed in seeds), options.results, options.processes
        )
        reference = None if options.constant else oracle(endpoint, options.time).score
        print(summary(results, reference), flush=True)
        _print_misses(results if options.misses else ())


def _print_misses(results: Iterable[Result]) -> None:
    by_name = defaultdict(list)
    for result in results:
        if not result.covers:
            by_name[result.endpoint].append(result)
    for name, missed in by_name.items():
        for result in missed:
            span = f"{result.low:.2f} to {result.high:.2f}" if result.low is not None else result.outcome
            print(f"  {name} seed {result.seed}: {span}, truth {result.truth:.2f}")
