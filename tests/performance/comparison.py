"""How long a comparison of long waves takes, and how much memory: ten runs, a million requests each at full length."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.performance.figures import Figure, Program, below
from tests.waves import make_run

RUNS, RATE = 10, 2_000


def figures(seconds: float) -> list[Figure]:
    """Ten waves of so many seconds at 2,000 requests a second, made up in memory, compared by the command."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / str(number) for number in range(RUNS)]
        for number, run in enumerate(runs):
            make_run(run, int(seconds * RATE), RATE, middle_ms=20 + number)
        command = [sys.executable, "-m", "inference_benchmarker.cli", "--plot", *map(str, runs)]
        begin = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        took = time.monotonic() - begin
        page = (runs[0] / "benchmark_plots.html").stat().st_size
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return [
        Figure(f"page and PNG of {RUNS} runs of {seconds * RATE:,.0f} requests", took, "s", below(20)),
        Figure("most memory", memory, "MiB", below(2048)),
        Figure("the page", page / 1e6, "MB", below(10)),
    ]


PROGRAM = Program("comparison of ten runs", figures, seconds=500, quick_seconds=10)

if __name__ == "__main__":
    PROGRAM.main()
