"""Many proofs of plans whose truth is known: ``python -m tests.performance capacity-proof --help``.

Each is of an endpoint that a search was simulated for, and of a fleet of 2 to 10 instances behind a router that picks
one at random. A right plan sends as many times the interval's lower end, which is the most that a plan may: what it
runs at by default is 70% of that. A plan that is one instance short sends what one instance more would just hold.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing import Pool
from statistics import mean
from typing import TYPE_CHECKING, Literal

import numpy as np

from server_capacity.experiments.proof.evidence import Aim, Bursts, Judgement
from server_capacity.search.settings import Settings
from tests.performance.capacity.driver import play
from tests.performance.capacity.endpoints import ENDPOINTS
from tests.performance.capacity.queues import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.performance.capacity.endpoints import Endpoint

Kind = Literal["right", "short"]
SIX = ("exact", "exponential", "single", "lognormal", "refusing", "plain_batcher")
MOST_INSTANCES = 10
HEAD = f"{'plans':<22}{'proofs':>8}{'holds':>8}{'fails':>8}{'cannot tell':>13}{'mean seconds':>14}"


@dataclass(frozen=True, slots=True)
class Task:
    """One search, and the proofs of what follows from it."""

    name: str
    seed: int
    search_s: float


@dataclass(frozen=True, slots=True)
class Proven:
    """A proof and its truth: the plan of ``instances`` of an endpoint was right, or one instance short."""

    kind: Kind
    name: str
    seed: int
    instances: int
    seconds: float
    times_allowed: float
    judgement: Judgement


def proofs_of(task: Task) -> list[Proven]:
    """A right plan and one that is an instance short; the former only where the lower end is below the truth."""
    endpoint, random = ENDPOINTS[task.name], np.random.default_rng([task.seed, SIX.index(task.name)])
    answer = play(endpoint, Settings(time_s=task.search_s), task.seed).answer
    limit, instances = endpoint.limits[0], int(random.integers(2, MOST_INSTANCES + 1))
    reported = next((each for each in answer.estimates if each.limit == limit.expression), None)
    if (
        answer.interval is None
        or answer.rate is None
        or reported is None
        or not reported.slope
        or not reported.dispersion
    ):
        return []
    assert endpoint.truth is not None
    bursts, low = Bursts(limit.allowed, reported.dispersion, reported.slope), answer.interval.low
    rates: list[tuple[Kind, float]] = [("short", endpoint.truth * (instances + 1) / instances)]
    if low <= endpoint.truth:
        rates.append(("right", low))
    found = []
    for number, (kind, rate) in enumerate(rates):
        aim = Aim(instances * rate, instances, low / answer.rate, answer.rate)
        seconds = aim.length_s(bursts)
        of, over = counted(endpoint, aim, aim.warmup_s(bursts), seconds, [task.seed, number])
        judgement = bursts.judge(of, over, aim.short)
        found.append(Proven(kind, task.name, task.seed, instances, seconds, over / of / limit.allowed, judgement))
    return found


def counted(endpoint: Endpoint, aim: Aim, warmup_s: float, seconds: float, seed: Sequence[int]) -> tuple[int, int]:
    """The requests of a wave that begins with empty instances, and how many are over the first limit."""
    limit, of, over = endpoint.limits[0], 0, 0
    for one, two in np.random.default_rng(seed).integers(2**63, size=(aim.instances, 2)).tolist():
        counts = Queue(endpoint.rules, one).long_run(
            two, aim.target_rps / aim.instances, limit.bound_s or math.inf, warmup_s, seconds, 1
        )
        sent, slow, refused = (int(each[0]) for each in counts)
        of, over = (of + sent, over + refused) if limit.bound_s is None else (of + sent - refused, over + slow)
    return of, over


def table(found: Sequence[Proven]) -> Iterator[str]:
    """Rows of all plans, and of those of each endpoint."""
    yield HEAD
    for kind in ("right", "short"):
        of_kind = [each for each in found if each.kind == kind]
        for name in ("", *SIX):
            mine = [each for each in of_kind if name in ("", each.name)]
            if mine:
                counts = Counter(each.judgement for each in mine)
                shares = [counts[each] / len(mine) for each in ("holds", "fails", "cannot_tell")]
                yield (
                    f"{f'{kind} {name}':<22}{len(mine):>8}{shares[0]:>8.1%}{shares[1]:>8.1%}{shares[2]:>13.1%}"
                    f"{mean(each.seconds for each in mine):>14.0f}"
                )


def main(arguments: Sequence[str] | None = None) -> None:
    """The table, printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity-proof", description=__doc__)
    parser.add_argument("--proofs", type=int, default=510, metavar="N", help="of each kind, about (default: 510)")
    parser.add_argument("--seed", type=int, default=1, help="the first search's; the next has the next")
    parser.add_argument("--time", type=float, default=180.0, metavar="S", help="of load of each search (default: 180)")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    options = parser.parse_args(arguments)
    last = options.seed + math.ceil(options.proofs / len(SIX))
    tasks = [Task(name, seed, options.time) for seed in range(options.seed, last) for name in SIX]
    began = time.monotonic()
    with Pool(options.processes) as pool:
        found = [proven for each in pool.imap(proofs_of, tasks) for proven in each]
    print("\n".join(table(found)))
    print(f"{time.monotonic() - began:.0f} s")
