"""What the tool reports against what the server saw: counts and latency of a 5 ms endpoint."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly
from tests.performance.stamp_server import StampServer

RATES = (100, 1_000, 3_000)
DELAY_MS = 5.0


def bare_off_ms(rate: int, seconds: float) -> dict[int, float]:
    """The same without the tool: what the client library and the machine add to the server's time."""
    command = [sys.executable, "-m", "tests.performance.bare_loop", str(measure.HTTP)]
    with StampServer(delay_ms=DELAY_MS) as server:
        output = subprocess.run(
            [*command, "--rate", str(rate), "--seconds", f"{seconds:g}"],
            env=measure.environment(server.url, rate),
            cwd=measure.REPOSITORY,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        log = server.log()
    served_ms = (log["answered_ns"] - log["arrival_ns"]) / measure.NS_PER_MS
    found = json.loads(output)
    return {p: abs(found[f"p{p}_ms"] - measure.percentile(served_ms, p)) for p in (50, 99)}


def at(rate: int, seconds: float) -> list[Figure]:
    """One rate from two workers."""
    flags = ("--client-rps", str(rate), "--obs-time", f"{seconds:g}", "--workers", "2")
    with StampServer(delay_ms=DELAY_MS) as server:
        wave = measure.run(measure.HTTP, server.url, round(rate * seconds), *flags)
        log = server.log()
    served_ms = (log["answered_ns"] - log["arrival_ns"]) / measure.NS_PER_MS
    bare = bare_off_ms(rate, seconds)
    found = [
        Figure(f"{rate:,}/s: sent, by the ledger", wave.ledger("sent"), "", exactly(len(log))),
        Figure(f"{rate:,}/s: records", len(wave.requests), "", exactly(len(log))),
    ]
    for quantile in (50, 99):
        latency = f"{rate:,}/s: latency p{quantile}"
        reported = wave.reported_ms("latency", f"p{quantile}")
        served = measure.percentile(served_ms, quantile)
        found += [
            Figure(f"{latency}, reported", reported, "ms"),
            Figure(f"{latency}, off the server's by", abs(reported - served), "ms", below(0.3)),
            Figure(f"{latency}, off the server's by in a bare client", bare[quantile], "ms"),
        ]
    return found


def figures(seconds: float) -> list[Figure]:
    """All rates."""
    return [figure for rate in RATES for figure in at(rate, seconds)]


PROGRAM = Program("reported against served", figures, seconds=10, quick_seconds=3)

if __name__ == "__main__":
    PROGRAM.main()
