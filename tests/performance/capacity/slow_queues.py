"""Queues whose answers take seconds: ``python -m tests.performance capacity-slow-queues [--searches N]``.

Each is searched as a queue, and as an endpoint that generates its answers: sessions of one turn, as long as a service.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from server_capacity.search.settings import Settings
from tests.performance.capacity.driver import play
from tests.performance.capacity.endpoints import Endpoint, success, times
from tests.performance.capacity.queues import Rules
from tests.performance.capacity.results import Result
from tests.performance.capacity.truths import closed_form, first_crossing

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVERS, SERVICES_S = (1, 4, 16), (1.0, 3.0, 5.0)
LIMITS = {"exact": (3.0, 2.0, 4.0), "exponential": (3.5, 3.5, 4.0), "lognormal": (3.5, 3.5, 4.0)}
"""Of p95, in services, of each length of these."""
_ARRIVALS, _CV = 1e6, {"lognormal": 0.8}
_HEAD = "servers  searched as  searches  found  contains it  lower end above  half-width   bias"


def endpoints(servers: int) -> list[Endpoint]:
    """Those with so many servers, with their truths."""
    made = []
    for service, limits in LIMITS.items():
        for seconds, limit in zip(SERVICES_S, limits, strict=True):
            rules = Rules(servers, seconds, service, _CV.get(service, 0.0))  # type: ignore[arg-type]
            endpoint = Endpoint(service, "", rules, (times(95, limit * seconds), success(0.95)))
            truth = closed_form(endpoint) or first_crossing(endpoint, endpoint.limits[0], _ARRIVALS)
            made.append(replace(endpoint, truth=truth))
    return made


def _result(endpoint: Endpoint, seed: int, *, generated: bool) -> Result:
    alone_s = endpoint.rules.mean_s if generated else None
    played = play(endpoint, Settings(), seed, alone_s=alone_s)
    return Result.of("", seed, endpoint.truth or 0.0, played.answer, load_s=played.load_s)


def _line(results: Sequence[Result]) -> str:
    found = [each for each in results if each.low is not None and each.rate is not None]
    contains = sum(each.covers for each in found) / len(found)
    above = sum(each.low > each.truth for each in found if each.low is not None) / len(found)
    bias = median(each.rate / each.truth for each in found if each.rate is not None) - 1
    half = median(each.half / each.truth for each in found)
    return f"{len(results):8} {len(found):6} {contains:12.1%} {above:16.1%} {half:11.1%} {bias:+6.1%}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity-slow-queues", description=__doc__)
    parser.add_argument("--searches", type=int, default=8, metavar="N", help="of each queue (default: 8)")
    parser.add_argument("--seed", type=int, default=2, help="the first search's; the next has the next")
    options = parser.parse_args(arguments)
    seeds = range(options.seed, options.seed + options.searches)
    print(_HEAD)
    for servers in SERVERS:
        queues = endpoints(servers)
        for words, generated in (("queue", False), ("generated", True)):
            results = [_result(each, seed, generated=generated) for each in queues for seed in seeds]
            print(f"{servers:7}  {words:11}  {_line(results)}", flush=True)
