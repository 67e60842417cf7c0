"""How often a comparison of several runs a side is right: recorded waves, drawn again and again.

Three embedded endpoints are sent the same waves in turn, in a random order each time: two equal ones and one whose
service takes a tenth longer. Sides of five waves are drawn from the VALID ones, as a user would have measured them.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from inference_benchmarker import Wave
from inference_benchmarker.embedded.running import EndpointConfig, start
from tests.performance.figures import Figure, Program, at_least, below
from tests.performance.measure import BENCHMARK, MEASURED, PATIENCE_S, REPOSITORY
from visualization.comparison.comparison import Comparison, compare

ROUNDS, REPEATS, TRIES = 24, 5, 400
RATE, SERVICE_S, SLOWER = 100, 0.1, 1.1
FACTORIES = REPOSITORY / "factories" / "demo" / "factories_demo.py"


def record(folder: Path, seconds: float) -> tuple[list[Wave], list[Wave]]:
    """The waves of the two equal endpoints, and those of the slower one."""
    order = random.Random(1)
    services = (SERVICE_S, SERVICE_S, SERVICE_S * SLOWER)
    waves: tuple[list[Wave], list[Wave]] = ([], [])
    with ExitStack() as running:
        configs = [EndpointConfig(servers=20, service="lognormal", cv=0.3, service_s=each) for each in services]
        endpoints = [running.enter_context(start(config)) for config in configs]
        for number in range(ROUNDS):
            for which in order.sample(range(len(endpoints)), len(endpoints)):
                run = _run(folder / f"{number}_{which}", endpoints[which].url, seconds)
                waves[services[which] > SERVICE_S].append(run)
    return waves


def _run(folder: Path, url: str, seconds: float) -> Wave:
    flags = ["--client-rps", str(RATE), "--obs-time", f"{seconds:g}", "--warmup", "2", "--quiet"]
    command = [*BENCHMARK, "--factories-file", str(FACTORIES), *flags, "--output-dir", str(folder)]
    environment = os.environ | {"BENCHMARK_DEMO_URL": url}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode not in MEASURED:
        raise RuntimeError(f"benchmark ended with {done.returncode}:\n{done.stderr}")
    return Wave.load(next(folder.glob("*_benchmark")))


def differs(comparison: Comparison) -> bool:
    """Tells whether a change of anything is called."""
    return any(row.outcome in ("worse", "improved") for row in comparison.rows)


def finds(comparison: Comparison) -> bool:
    """Tells whether the new side is called slower in the middle."""
    return any(row.name == "response_time.p50" and row.outcome == "worse" for row in comparison.rows)


def figures(seconds: float) -> list[Figure]:
    """Waves of so many seconds, and what 400 comparisons of five a side make of them."""
    with tempfile.TemporaryDirectory() as folder:
        equal, slower = ([wave for wave in side if wave.verdict.valid] for side in record(Path(folder), seconds))
        if len(equal) < 2 * REPEATS or len(slower) < REPEATS:
            raise RuntimeError(f"{len(equal)} and {len(slower)} waves were VALID: too few to draw from")
        draw = random.Random(2)
        called = found = 0
        for _ in range(TRIES):
            sides = draw.sample(equal, 2 * REPEATS)
            called += differs(compare(sides[:REPEATS], sides[REPEATS:]))
            found += finds(compare(draw.sample(equal, REPEATS), draw.sample(slower, REPEATS)))
    return [
        Figure("VALID waves of the equal endpoints", len(equal), f"of {2 * ROUNDS}"),
        Figure("VALID waves of the slower one", len(slower), f"of {ROUNDS}"),
        Figure("equal sides of which anything is called changed", 100 * called / TRIES, "%", below(7)),
        Figure("a tenth that is found at p50", 100 * found / TRIES, "%", at_least(90)),
    ]


PROGRAM = Program("comparisons of five waves a side", figures, seconds=10, quick_seconds=3)

if __name__ == "__main__":
    PROGRAM.main()
