"""The simulation of a fleet: against closed forms of queues, and how long a day of ten million requests takes.

Of a closed form as many requests are simulated as a thousand times the seconds. The day is one of ten million; each
run of it is in a process of its own, for its memory. A mean wait is known to about 0.5% at these loads and this length.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.fleet.demand import Step, Steps
from server_capacity.models.fleet.policies import Fixed, TargetTracking
from server_capacity.models.fleet.service import Service
from server_capacity.models.fleet.simulate import simulate
from tests.performance.figures import Figure, Program, below
from tests.performance.recording import peak_mb
from tests.queue_formulas import MDc, MMc, shorter_of_two

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.models.fleet.routing import Routing

MEAN_S = 0.02
RANKS = (np.arange(1 << 16) + 0.5) / (1 << 16)
EXPONENTIAL, CONSTANT = -np.log1p(-RANKS) * MEAN_S, np.array([MEAN_S])
LOADS = ((1, 0.7), (4, 0.8), (16, 0.9))
INSTANCES = 10
DAY = 10_000_000
ROUTINGS: tuple[Routing, ...] = ("random", "least_outstanding")
_HERE = "tests.performance.fleet"


def closed_forms(requests: float) -> Iterator[Figure]:
    """Instances behind random routing are so many queues; one alone is one, whatever the routing."""
    for servers, load in LOADS:
        rate = load * servers / MEAN_S
        for name, queue, services in (
            ("M/M", MMc(rate, MEAN_S, servers), EXPONENTIAL),
            ("M/D", MDc(rate, MEAN_S, servers), CONSTANT),
        ):
            steady = Steps((Step(INSTANCES * rate, INSTANCES * rate, requests / (INSTANCES * rate)),))
            service = Service(servers, 0.0, services)
            times = simulate(service, steady, Fixed(INSTANCES), "random", bound_s=1.0, allowed=0.01, seed=1).times
            mean, p99 = times.mean or math.nan, times.quantile(0.99) or math.nan
            off = {"mean wait": (mean - MEAN_S) / queue.mean_wait_s, "p99": p99 / queue.p99_s()}
            for number, ratio in off.items():
                limit = below(1 if number == "mean wait" else 2)
                yield Figure(f"{name}/{servers} at {load:.0%}: {number} off by", 100 * abs(ratio - 1), "%", limit)


def shorter(requests: float) -> Figure:
    """Two instances of one server each, and a router that takes the shorter queue."""
    load = 0.8
    steady = Steps((Step(2 * load / MEAN_S, 2 * load / MEAN_S, requests * MEAN_S / (2 * load)),))
    service = Service(1, 0.0, EXPONENTIAL)
    times = simulate(service, steady, Fixed(2), "least_outstanding", bound_s=1.0, allowed=0.01, seed=1).times
    off = abs((times.mean or math.nan) / MEAN_S / shorter_of_two(load, 40) - 1)
    return Figure("the shorter of two queues at 80%: mean response off by", 100 * off, "%", below(1))


def day() -> Steps:
    """Hours of which the rate follows the sun: ten million requests, at night a fifth of those of noon."""
    rates = 1 - 2 / 3 * np.cos(np.linspace(0, 2 * np.pi, 25))
    rates *= DAY / 3600 / np.convolve(rates, [0.5, 0.5], "valid").sum()
    return Steps(tuple(Step(*ends, 3600.0) for ends in pairwise(rates.tolist())))


def simulate_day(routing: Routing) -> dict[str, float]:
    """In this process: seconds of it and its largest memory, for the scaling fleet and for one that stands still."""
    service = Service(1, 0.005, EXPONENTIAL)
    scaling = TargetTracking(metric="invocations", target=30 * 60, minimum=2, maximum=12, instance_start_s=240)
    begun, cpu = time.perf_counter(), time.process_time()
    runs = [
        simulate(service, day(), policy, routing, bound_s=0.2, allowed=0.01, seed=1) for policy in (scaling, Fixed(8))
    ]
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "peak_mb": peak_mb(), "requests": runs[0].requests}


def days() -> Iterator[Figure]:
    """The day with each routing."""
    for routing in ROUTINGS:
        done = subprocess.run([sys.executable, "-m", _HERE, routing], capture_output=True, text=True, check=True)
        seen = json.loads(done.stdout)
        name = f"a day, two policies, {routing.replace('_', ' ')}"
        yield Figure(f"{name}: requests of each", seen["requests"])
        yield Figure(f"{name}: seconds", seen["seconds"], "s", below(40))
        yield Figure(f"{name}: seconds of CPU", seen["cpu"], "s")
        yield Figure(f"{name}: most memory", seen["peak_mb"], "MB", below(1000))


def figures(seconds: float) -> list[Figure]:
    """All of them."""
    return [*closed_forms(1000 * seconds), shorter(1000 * seconds), *days()]


PROGRAM = Program("a fleet simulated", figures, seconds=20_000, quick_seconds=2_000)

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ROUTINGS:
        print(json.dumps(simulate_day(sys.argv[1])))
    else:
        PROGRAM.main()
