"""How long a user waits beyond the wave itself: wall time of the whole command, and of its help."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tests.performance import measure
from tests.performance.figures import Figure, Program, below
from tests.performance.stamp_server import StampServer

REPEATS = 5
RATE = 500


def beyond_obs_time_s(seconds: float) -> float:
    """From the command line to the printed result, less the wave; two workers."""
    flags = ("--client-rps", str(RATE), "--obs-time", f"{seconds:g}", "--workers", "2")
    with StampServer(delay_ms=1) as server:
        return measure.run(measure.HTTP, server.url, round(RATE * seconds), *flags).wall_s - seconds


def help_s() -> float:
    """``benchmark --help``: the console script where it is installed, else its module."""
    script = Path(sys.executable).with_name("benchmark")
    command = [str(script)] if script.exists() else list(measure.BENCHMARK)
    start = time.monotonic()
    subprocess.run([*command, "--help"], cwd=measure.REPOSITORY, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def figures(seconds: float) -> list[Figure]:
    """Medians of several runs."""
    beyond = [beyond_obs_time_s(seconds) for _ in range(REPEATS)]
    helped = [help_s() for _ in range(REPEATS)]
    return [
        Figure("wall time beyond --obs-time, 2 workers", median(beyond), "s", below(1)),
        Figure("the slowest of them", max(beyond), "s"),
        Figure("benchmark --help", median(helped), "s", below(0.1)),
    ]


PROGRAM = Program("start-up and end", figures, seconds=2, quick_seconds=1)

if __name__ == "__main__":
    PROGRAM.main()
