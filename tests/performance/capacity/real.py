"""Searches with real processes: ``python -m tests.performance.capacity.real [--searches 20] [--time 60]``.

The endpoint is the embedded one, 4 servers of exactly 20 ms with p99 < 100 ms: 174 a second of Poisson arrivals (see
``tests.performance.capacity.truths``), 200 of even ones. Then what must never be taken for an endpoint's capacity: a
client that is busy for 2 ms with each request, and an endpoint that is faster than the client.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.system.packaged import demo_factories
from tests.performance.figures import Figure, at_least, below, between, exactly, machine, table

TRUTH, LIMIT = 174.0, "p99<100ms"
LEAST_EVEN, MOST_EVEN, MOST_WALL_S = 196.0, 200.0, 120.0
CLIENT_LIMITED = 3
BUSY = Path(__file__).with_name("factories_busy.py")


@dataclass(frozen=True, slots=True)
class Searched:
    """What the command left: its exit code, the seconds it took, and capacity.json."""

    exit_code: int
    wall_s: float
    found: dict[str, Any]

    @property
    def interval(self) -> tuple[float, float]:
        """Its ends; nothing is between them where there is none."""
        ends = self.found.get("interval") or {"low": float("inf"), "high": float("-inf")}
        return ends["low"], ends["high"]


def search(factories: Path, *flags: str) -> Searched:
    """One search by the command, in a folder that goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        where = ["--output-dir", folder, "--json", "--quiet"]
        command = [sys.executable, "-m", "inference_benchmarker.cli", "capacity", "--factories-file", str(factories)]
        began = time.monotonic()
        done = subprocess.run([*command, *where, *flags], check=False, stdout=subprocess.PIPE)
        found = json.loads(done.stdout) if done.stdout else {}
        return Searched(done.returncode, time.monotonic() - began, found)


def reported(name: str, searched: Searched) -> None:
    """A line for each search, as soon as it is over."""
    found = searched.found
    seconds, answer = f"{searched.wall_s:.0f} s", found.get("headline", "no answer")
    print(f"{name}: exit {searched.exit_code}, {seconds}, {answer}", flush=True)


def of_an_endpoint(searches: int, seconds: float, first: int) -> list[Figure]:
    """Even arrivals once, Poisson arrivals many times."""
    demo, limits = demo_factories(), ["--slo", LIMIT]
    with start(EndpointConfig()) as endpoint:
        os.environ["BENCHMARK_DEMO_URL"] = endpoint.url
        even = search(demo, *limits, "--arrivals", "constant", "--time", "60")
        reported("even arrivals", even)
        poisson = []
        for seed in range(first, first + searches):
            poisson.append(search(demo, *limits, "--time", f"{seconds:g}", "--seed", str(seed)))
            reported(f"Poisson arrivals, seed {seed}", poisson[-1])
    containing = [each for each in poisson if each.interval[0] <= TRUTH <= each.interval[1]]
    widths = sorted((each.interval[1] - each.interval[0]) / TRUTH for each in poisson)
    return [
        Figure("even arrivals: rate", even.found.get("rate") or float("nan"), "/s", between(LEAST_EVEN, MOST_EVEN)),
        Figure("even arrivals: the whole command", even.wall_s, "s", below(MOST_WALL_S)),
        Figure(f"{searches} Poisson: interval contains 174/s", len(containing), "", at_least(round(0.9 * searches))),
        Figure("the same: lower end above 174/s", sum(each.interval[0] > TRUTH for each in poisson)),
        Figure("the same: median width of the interval", 100 * widths[len(widths) // 2], "% of 174/s"),
        Figure("the same: median seconds of a command", sorted(each.wall_s for each in poisson)[searches // 2], "s"),
    ]


def of_the_client() -> list[Figure]:
    """Both must end with exit code 3 and without a rate."""
    busy = search(BUSY, "--slo", LIMIT, "--time", "30")
    reported("busy invoke", busy)
    with start(EndpointConfig(service="none")) as endpoint:
        os.environ["BENCHMARK_DEMO_URL"] = endpoint.url
        fast = search(demo_factories(), "--slo", LIMIT, "--time", "30")
    reported("fast endpoint", fast)
    return [
        Figure("an invoke that is busy for 2 ms: exit code", busy.exit_code, "", exactly(CLIENT_LIMITED)),
        Figure("the same: rates reported", float(busy.found.get("rate") is not None), "", exactly(0)),
        Figure("an endpoint faster than the client: exit code", fast.exit_code, "", exactly(CLIENT_LIMITED)),
        Figure("the same: rates reported", float(fast.found.get("rate") is not None), "", exactly(0)),
    ]


def main() -> None:
    """Everything, and a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=20, help="with Poisson arrivals (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the first of them; the next has the next")
    parser.add_argument("--time", type=float, default=60.0, help="seconds of load of each (default: 60)")
    options = parser.parse_args()
    print(machine(), flush=True)
    found = [*of_the_client(), *of_an_endpoint(options.searches, options.time, options.seed)]
    print(table("Searches with real processes", found))


if __name__ == "__main__":
    main()
