"""The cost of the harness: CPU per request of ``--concurrency 32`` less that of a bare loop of 32 greenlets.

Both call the same invoke against the same server that answers at once. They take turns, so that what else the
machine does meets both, and the median of the pairs is the figure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from tests.performance import measure
from tests.performance.figures import Figure, Program, below
from tests.performance.stamp_server import StampServer

CONCURRENCY = "32"
PAIRS = 4
PAYLOADS = 10_000


def bare_us(url: str, seconds: float) -> float:
    """CPU in µs for each request of the bare loop."""
    command = [sys.executable, "-m", "tests.performance.bare_loop", str(measure.HTTP)]
    done = subprocess.run(
        [*command, "--concurrency", CONCURRENCY, "--seconds", f"{seconds:g}"],
        env=measure.environment(url, PAYLOADS),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    return float(1e6 * result["cpu_s"] / result["requests"])


def harness_us(url: str, seconds: float) -> float:
    """CPU in µs of the worker for each request of a closed-loop wave."""
    flags = ("--concurrency", CONCURRENCY, "--obs-time", f"{seconds:g}", "--workers", "1")
    wave = measure.run(measure.HTTP, url, PAYLOADS, *flags)
    return 1e6 * wave.worker_cpu_s / len(wave.requests)


def figures(seconds: float) -> list[Figure]:
    """The pairs, in turn."""
    with StampServer() as server:
        pairs = [(bare_us(server.url, seconds), harness_us(server.url, seconds)) for _ in range(PAIRS)]
    above = median(full - bare for bare, full in pairs)
    return [
        Figure("harness above the bare loop", above, "us/request", below(30)),
        Figure("bare loop of 32 greenlets", median(bare for bare, _ in pairs), "us/request"),
        Figure("worker at --concurrency 32", median(full for _, full in pairs), "us/request"),
    ]


PROGRAM = Program("cost of the harness", figures, seconds=5, quick_seconds=2)

if __name__ == "__main__":
    PROGRAM.main()
