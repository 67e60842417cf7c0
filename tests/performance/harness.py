"""The CPU of an arrival whose ``invoke`` does nothing: what the open loop itself costs, and the kernel's part of it.

Run it in this tree and in that of an earlier commit, in turn: such figures compare only within one hour.
"""

from __future__ import annotations

import contextlib
import time
from statistics import median
from typing import TYPE_CHECKING

import psutil

from tests.performance import measure
from tests.performance.figures import Figure, Program

if TYPE_CHECKING:
    import subprocess

RATES = (1_000, 4_000, 10_000)
ROUNDS = 5
INSTANT = measure.HERE / "factories_instant.py"
POLL_S = 0.1


def kernel_share(command: subprocess.Popen[str]) -> float:
    """The kernel's share of the worker's CPU time in a wave that runs, from its first reports to its end; else NaN."""
    measure.wait_for_reports(measure.output_dir(command.pid))
    spent = []
    while command.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            spent += [worker.cpu_times()[:2] for worker in measure.workers(command.pid)]
        time.sleep(POLL_S)
    if len(spent) < 2:
        return float("nan")
    (first_user, first_kernel), (user, kernel) = spent[0], spent[-1]
    used = user - first_user + kernel - first_kernel
    return (kernel - first_kernel) / used if used else float("nan")


def arrival_us(rate: int, seconds: float) -> tuple[float, float]:
    """CPU of the one worker for an arrival, in µs, and the kernel's part of it."""
    flags = ("--client-rps", str(rate), "--obs-time", f"{seconds:g}", "--workers", "1")
    with measure.running(INSTANT, "", 1, *flags) as (command, finish):
        share = kernel_share(command)
        wave = finish()
    total = 1e6 * wave.worker_cpu_s / len(wave.requests)
    return total, share * total


def figures(seconds: float) -> list[Figure]:
    """Each rate, several times in turn."""
    rounds = [[arrival_us(rate, seconds) for rate in RATES] for _ in range(ROUNDS)]
    found = []
    for rate, costs in zip(RATES, zip(*rounds, strict=True), strict=True):
        found += [
            Figure(f"{rate:,}/s: CPU of an arrival", median(total for total, _ in costs), "us"),
            Figure(f"{rate:,}/s: the kernel's part", median(kernel for _, kernel in costs), "us"),
        ]
    return found


PROGRAM = Program("harness of an arrival", figures, seconds=5, quick_seconds=2)

if __name__ == "__main__":
    PROGRAM.main()
