"""How many requests a second one worker sends on time: rising rates against a 1 ms endpoint.

A rate is held when lag p99 is below 5 ms and nothing was dropped. Two clients: geventhttpclient's ``post`` as
a user writes it, and its connection pool and parser with requests written beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.performance import measure
from tests.performance.figures import Figure, Program, at_least
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from pathlib import Path

RATES = range(6_000, 13_001, 1_000)
LAG_P99_MS = 5.0
TARGET = 10_000
AIM = 12_000
WARMUP_S = 1


def step(factories: Path, rate: int, seconds: float) -> tuple[bool, list[Figure]]:
    """One rate: whether it was held, and its figures."""
    arrivals = round(rate * seconds)
    flags = ("--client-rps", str(rate), "--obs-time", f"{seconds:g}", "--warmup", str(WARMUP_S))
    with StampServer(delay_ms=1) as server:
        wave = measure.run(factories, server.url, arrivals + 2 * rate * WARMUP_S, *flags)
        joined = measure.arrivals(server.log(), wave)
    lag_p99 = measure.percentile(wave.lag_ms, 99)
    cpu_us = 1e6 * wave.worker_cpu_s / len(wave.requests)
    missing = arrivals - len(wave.requests)
    found = [
        Figure(f"  {rate:,}/s: lag p50", measure.percentile(wave.lag_ms, 50), "ms"),
        Figure(f"  {rate:,}/s: lag p99", lag_p99, "ms"),
        Figure(f"  {rate:,}/s: rate at the server", measure.rate(joined), "/s"),
        Figure(f"  {rate:,}/s: CPU of the worker", cpu_us, "us/request"),
    ]
    if missing:
        found.append(Figure(f"  {rate:,}/s: not sent", missing))
    return lag_p99 < LAG_P99_MS and not missing, found


def client(name: str, factories: Path, seconds: float) -> list[Figure]:
    """The highest rate that this client held, then every step."""
    held, steps = 0, []
    for rate in RATES:
        on_time, found = step(factories, rate, seconds)
        steps += found
        held = rate if on_time else held
    return [Figure(f"{name}: highest rate held (aim: {AIM:,})", held, "/s", at_least(TARGET)), *steps]


def figures(seconds: float) -> list[Figure]:
    """Both clients."""
    return client("post", measure.HTTP, seconds) + client("pool and parser", measure.RAW, seconds)


PROGRAM = Program("ceiling of one worker", figures, seconds=5, quick_seconds=2)

if __name__ == "__main__":
    PROGRAM.main()
