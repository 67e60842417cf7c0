"""What ``find_worker_saturation`` finds of an invoke of known cost: a sleep-free busy millisecond.

The truth is one over that millisecond and what the tool itself takes of the worker's core for a request.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from client_capacity.worker_saturation import find_worker_saturation
from tests.performance.figures import Figure, Program, below, between

if TYPE_CHECKING:
    from client_capacity.worker_saturation import WorkerSaturation

INVOKE_S = 0.001
TOOL_S = 15e-6
TRUTH = 1 / (INVOKE_S + TOOL_S)
FACTORIES = f"""
import time


def invoke_factory():
    return spin


def spin(payload):
    end = time.perf_counter_ns() + {round(INVOKE_S * 1e9)}
    while time.perf_counter_ns() < end:
        pass


def payload_factory():
    return {{"pre_computed": True, "input": [0]}}
"""


def find(folder: Path, seconds: float) -> WorkerSaturation:
    """One call; its waves go with the folder."""
    file = folder / "busy.py"
    file.write_text(FACTORIES, encoding="utf-8")
    return find_worker_saturation(file, step_time_s=seconds, output_dir=folder)


def call(number: int, found: WorkerSaturation) -> list[Figure]:
    """What one call found."""
    high = found.high or float("nan")
    return [
        Figure(f"call {number}: rate over the truth ({TRUTH:.0f}/s)", found.rate / TRUTH, "", between(0.9, 1.1)),
        Figure(f"call {number}: rate", found.rate, "/s"),
        Figure(f"call {number}: 95% interval, low end", found.low, "/s"),
        Figure(f"call {number}: 95% interval, high end", high, "/s"),
        Figure(f"call {number}: steps", len(found.steps)),
        Figure(f"call {number}: steps in which others took the core", sum(step.disturbed for step in found.steps)),
    ]


def figures(seconds: float) -> list[Figure]:
    """Two calls, and how far apart they are."""
    with tempfile.TemporaryDirectory(prefix="benchmark_perf_") as folder:
        first, second = (find(Path(folder), seconds) for _ in range(2))
    apart = 100 * abs(first.rate - second.rate) / max(first.rate, second.rate, 1e-9)
    return [*call(1, first), *call(2, second), Figure("the two calls differ by", apart, "%", below(10))]


PROGRAM = Program("saturation of one worker, busy 1 ms", figures, seconds=3, quick_seconds=0.5)

if __name__ == "__main__":
    PROGRAM.main()
