"""Memory and time to put a wave together from its spool and store it, by the number of its requests.

The spools are made up. Each is put together in a process of its own, as ``benchmark report`` does it, whose most memory
the system tells.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from inference_benchmarker.wave.wave import Wave
from tests.performance.cost import cost_of
from tests.performance.figures import Figure, Program, below
from tests.performance.made_up import RATE, make_spool
from tests.performance.measure import BENCHMARK, MEASURED

EMPTY = 1_000
TURNS = 3


def measured(requests: int) -> tuple[float, float, float]:
    """Wall and CPU seconds, and most memory in bytes, of a command that puts a wave of so many requests together."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = make_spool(Path(folder), requests)
        cost = cost_of(*BENCHMARK, "report", str(run_dir.path))
        found = len(Wave.load(run_dir.path).records)
    if cost.code not in MEASURED or found != requests:
        raise RuntimeError(f"{found:,} requests of {requests:,} were put together, exit code {cost.code}")
    return cost.wall_s, cost.cpu_s, cost.most_bytes


def figures(seconds: float) -> list[Figure]:
    """A wave of so many seconds at 10,000/s beside one of a thousand requests; medians of some turns."""
    requests = int(seconds * RATE)
    whole, empty = (np.median([measured(count) for _ in range(TURNS)], axis=0) for count in (requests, EMPTY))
    above = whole[2] - empty[2]
    return [
        Figure(f"memory for {requests:,} requests, above {EMPTY:,}", above / 1e6, "MB", below(60)),
        Figure("the same", above / (requests - EMPTY), "bytes/request"),
        Figure(f"wall, {requests:,} requests", whole[0], "s"),
        Figure(f"CPU, {requests:,} requests", whole[1], "s"),
        Figure(f"wall, {EMPTY:,} requests", empty[0], "s"),
    ]


PROGRAM = Program("putting a wave together", figures, seconds=120, quick_seconds=10)

if __name__ == "__main__":
    PROGRAM.main()
