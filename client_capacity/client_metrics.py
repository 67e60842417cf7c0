"""CPU and memory of this client's host while nothing of ours is sent, and waiting until it is idle.

A wave watches its client by itself; this is for scripts that look at the host between waves. Shares are percent: of
all cores, and of the memory.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import psutil

from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LEAST_INTERVAL_S = 0.01
OFTEN_S = 0.1
"""How often is looked where an interval of 0 asks for as often as is sensible."""

IDLE: dict[str, Any] = {
    "wait_limit": True,
    "max_wait_seconds": 60.0,
    "cpu_threshold": 10.0,
    "cpu_tolerance": 0.0,
    "memory_threshold": 100.0,
    "memory_tolerance": 0.0,
}
"""When this client counts as idle: ``cpu_threshold`` and ``memory_threshold`` are percent, each more by its tolerance
(0.2: by a fifth), so that what ``establish_client_baseline`` found can be given. ``wait_limit`` False: without end."""


def sample_client_metrics(duration_seconds: float, sample_interval_seconds: float = 0.01) -> dict[str, float]:
    """CPU and memory of this host over some seconds: ``cpu_max``, ``cpu_avg``, ``cpu_min``, the same of memory.

    ``sample_count`` is the number of samples. ``cpu_avg`` covers the whole time; in intervals below 0.1 s the system's
    clock makes single shares of CPU coarse.
    """
    interval_s = max(sample_interval_seconds or OFTEN_S, LEAST_INTERVAL_S)
    begin, end = psutil.cpu_times(), time.monotonic() + max(duration_seconds, interval_s)
    before, cpu, memory = begin, list[float](), list[float]()
    while True:
        time.sleep(max(min(interval_s, end - time.monotonic()), 0.0))
        now = psutil.cpu_times()
        cpu.append(_busy_percent(before, now))
        memory.append(psutil.virtual_memory().percent)
        before = now
        if time.monotonic() >= end:
            break
    return {
        "cpu_max": max(cpu),
        "cpu_avg": _busy_percent(begin, before),
        "cpu_min": min(cpu),
        "memory_max": max(memory),
        "memory_avg": statistics.fmean(memory),
        "memory_min": min(memory),
        "sample_count": len(cpu),
    }


def establish_client_baseline(sample_seconds: float = 5, sample_interval_seconds: float = 0) -> dict[str, float]:
    """The same while the client does nothing, such as before a wave. An interval of 0 means 0.1 s."""
    return sample_client_metrics(sample_seconds, sample_interval_seconds)


def wait_for_client_idle(
    max_wait_config: Mapping[str, Any] | None = None,
    check_interval: float = 1,
    print_header: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> bool:
    """Wait until CPU and memory of this host are low. True if they are, False if ``max_wait_seconds`` were over first.

    ``max_wait_config`` replaces any of ``IDLE``. By default nothing is printed; with ``say=print`` each sample
    is a line, after a header unless ``print_header`` is False. Raises BenchmarkError for an unknown key.
    """
    config = {**IDLE, **(max_wait_config or {})}
    if unknown := sorted(set(config) - set(IDLE)):
        raise BenchmarkError(f"max_wait_config has no key {', '.join(unknown)}.", f"Its keys are {', '.join(IDLE)}.")
    most_cpu = config["cpu_threshold"] * (1 + config["cpu_tolerance"])
    most_memory = config["memory_threshold"] * (1 + config["memory_tolerance"])
    if print_header:
        say(f"Waiting until CPU is at {most_cpu:.4g}% and memory at {most_memory:.4g}% at most ...")
    deadline = time.monotonic() + config["max_wait_seconds"]
    while True:
        found = sample_client_metrics(check_interval, 0)
        say(f"   CPU {found['cpu_avg']:.0f}%, memory {found['memory_avg']:.0f}%")
        if found["cpu_avg"] <= most_cpu and found["memory_avg"] <= most_memory:
            return True
        if config["wait_limit"] and time.monotonic() >= deadline:
            return False


def _busy_percent(before: Any, now: Any) -> float:
    """The share of CPU that was used between two looks; waiting for a disk is idle."""
    spent = {name: getattr(now, name) - getattr(before, name) for name in before._fields}
    counted = {name: max(seconds, 0.0) for name, seconds in spent.items() if not name.startswith("guest")}
    total, idle = sum(counted.values()), counted["idle"] + counted.get("iowait", 0.0)
    return 100 * (total - idle) / total if total else 0.0
