"""Time and memory to load a stored wave, which is checked whole: rows against ledger, counts, limits and digests.

The wave is made up, and put together once. Each turn loads it in a process of its own, whose most memory the system
tells; beside it, a wave of a thousand requests. All of the loading is counted, so that its checks take less.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from inference_benchmarker.wave.wave import Wave
from tests.performance.cost import cost_of
from tests.performance.figures import Figure, Program, below
from tests.performance.made_up import RATE, make_spool

EMPTY = 1_000
TURNS = 5
MOST_S, MOST_MB = 2, 200
LOAD = (
    "import sys; from inference_benchmarker import Wave; assert len(Wave.load(sys.argv[1]).records) == int(sys.argv[2])"
)


def measured(requests: int) -> tuple[float, float]:
    """CPU seconds and most memory in bytes of a process that loads a stored wave of so many; medians of some turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = make_spool(Path(folder), requests).path
        Wave.load(path)  # puts it together, and stores it
        turns = [cost_of(sys.executable, "-c", LOAD, str(path), str(requests)) for _ in range(TURNS)]
    if any(turn.code for turn in turns):
        raise RuntimeError(f"a wave of {requests:,} requests could not be loaded")
    cpu_s, most_bytes = np.median([(turn.cpu_s, turn.most_bytes) for turn in turns], axis=0)
    return float(cpu_s), float(most_bytes)


def figures(seconds: float) -> list[Figure]:
    """A wave of so many seconds at 10,000/s beside one of a thousand requests."""
    requests = int(seconds * RATE)
    (cpu_s, most), (least_s, least) = measured(requests), measured(EMPTY)
    return [
        Figure(f"CPU to load {requests:,} requests, above {EMPTY:,}", cpu_s - least_s, "s", below(MOST_S)),
        Figure("memory, the same", (most - least) / 1e6, "MB", below(MOST_MB)),
        Figure(f"CPU, {EMPTY:,} requests, with the imports", least_s, "s"),
    ]


PROGRAM = Program("loading a stored wave", figures, seconds=120, quick_seconds=10)

if __name__ == "__main__":
    PROGRAM.main()
