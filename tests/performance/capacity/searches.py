"""Many searches of endpoints whose capacity is known: ``python -m tests.performance capacity --help``.

Of each endpoint: coverage of the 95% interval, the lower end above the truth, the median interval score against an
oracle's, the bias over the half-width.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from multiprocessing import Pool
from pathlib import Path
from typing import TYPE_CHECKING

from server_capacity.search.answer import Answer
from server_capacity.search.settings import Settings
from tests.performance.capacity import easy_way, results
from tests.performance.capacity.driver import Feed, play
from tests.performance.capacity.endpoints import ENDPOINTS, HELD_OUT, Endpoint
from tests.performance.capacity.oracle import oracle
from tests.performance.capacity.results import Result
from tests.performance.capacity.scenarios import SCENARIOS
from tests.performance.capacity.truths import with_truth

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SIX = ("exact", "exponential", "single", "lognormal", "refusing", "batcher")


@dataclass(frozen=True, slots=True)
class Task:
    """One search to make."""

    endpoint: Endpoint
    seed: int
    settings: Settings
    feed: Feed
    easy: bool = False


def made(task: Task) -> Result:
    """The result of one search."""
    endpoint = task.endpoint
    assert endpoint.truth is not None
    given = (endpoint.name, task.seed, endpoint.truth)
    if task.easy:
        answer, load_s = easy_way.search(endpoint, task.settings.time_s or 180.0, task.seed)
        return Result.of(*given, answer, load_s=load_s)
    try:
        played = play(endpoint, task.settings, task.seed, task.feed)
    except ArithmeticError as error:
        return Result.of(*given, Answer("cannot_tell", limit=repr(error)))
    return Result.of(*given, played.answer, load_s=played.load_s, cpu_s=played.cpu_s)


def all_results(tasks: Iterable[Task], options: argparse.Namespace) -> dict[str, list[Result]]:
    """By endpoint, in order; those in the file are taken from there, the others added to it while there is time."""
    known = results.read(options.results)
    tasks = list(tasks)
    todo = [task for task in tasks if (task.endpoint.name, task.seed) not in known]
    ends = time.monotonic() + 60 * options.minutes
    for result in _made(todo, options.processes):
        known[result.endpoint, result.seed] = result
        results.keep(options.results, result)
        if time.monotonic() > ends:
            break
    found: dict[str, list[Result]] = {}
    for task in tasks:
        if (task.endpoint.name, task.seed) in known:
            found.setdefault(task.endpoint.name, []).append(known[task.endpoint.name, task.seed])
    return found


def _made(tasks: Sequence[Task], processes: int) -> Iterable[Result]:
    if processes == 1:
        yield from map(made, tasks)
        return
    with Pool(processes) as pool:
        yield from pool.imap(made, tasks)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity", description=__doc__)
    parser.add_argument("--endpoint", action="append", choices=list(ENDPOINTS), help="default: the six")
    parser.add_argument("--held-out", action="store_true", help="endpoints that nothing was adjusted to, instead")
    parser.add_argument("--scenario", action="append", choices=["all", *SCENARIOS], help="what an endpoint can be, too")
    parser.add_argument("--easy-way", action="store_true", help="doubling and bisecting with separate waves instead")
    parser.add_argument("--searches", type=int, default=300, metavar="N", help="of each endpoint (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="the first search's; the next has the next")
    parser.add_argument("--time", type=float, default=180.0, metavar="S", help="of load (default: 180)")
    parser.add_argument("--feed-delay", type=float, default=1.0, metavar="S", help="until an answer is known")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, metavar="N", help="what is not made by then is left out"
    )
    parser.add_argument("--misses", action="store_true", help="list each interval without the truth")
    parser.add_argument("--results", type=Path, metavar="FILE", help="a line of JSON for each; those in it are kept")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """The table, printed."""
    options = _options(arguments)
    if options.scenario:
        _print_scenarios(options)
    else:
        _print_table(options)


def _print_table(options: argparse.Namespace) -> None:
    settings, feed = Settings(time_s=options.time), Feed(delay_s=options.feed_delay)
    known = {} if options.held_out else {name: ENDPOINTS[name] for name in options.endpoint or SIX}
    endpoints = (known or HELD_OUT).values()
    tasks = (Task(each, seed, settings, feed, options.easy_way) for seed in _seeds(options) for each in endpoints)
    found = all_results(tasks, options)
    print(results.HEAD)
    for name, mine in found.items():
        reference = oracle(known[name], options.time).score if name in known else None
        print(results.line(mine, reference), flush=True)
        _print_misses(mine, options)
    if options.held_out:
        print(results.many("held out", [result for mine in found.values() for result in mine]))


def _print_scenarios(options: argparse.Namespace) -> None:
    for name, scenario in SCENARIOS.items():
        if name in options.scenario or "all" in options.scenario:
            endpoint = replace(with_truth(scenario.endpoint), name=name)
            tasks = [Task(endpoint, seed, scenario.settings, scenario.feed) for seed in _seeds(options)]
            found = all_results(tasks, options)[name]
            print(results.many(f"{name} ({scenario.title}; truth {endpoint.truth:.4g}/s)", found), flush=True)
            _print_misses(found, options)


def _seeds(options: argparse.Namespace) -> range:
    return range(options.seed, options.seed + options.searches)


def _print_misses(found: Sequence[Result], options: argparse.Namespace) -> None:
    if options.misses:
        print(results.misses(found), flush=True)
