"""What the tool reports against what the server saw: counts and latency of a 5 ms endpoint."""

from __future__ import annotations

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly
from tests.performance.stamp_server import StampServer

RATES = (100, 1_000, 3_000)
DELAY_MS = 5.0


def at(rate: int, seconds: float) -> list[Figure]:
    """One rate from two workers."""
    flags = ("--client-rps", str(rate), "--obs-time", f"{seconds:g}", "--workers", "2")
    with StampServer(delay_ms=DELAY_MS) as server:
        wave = measure.run(measure.HTTP, server.url, round(rate * seconds), *flags)
        log = server.log()
    served_ms = (log["answered_ns"] - log["arrival_ns"]) / measure.NS_PER_MS
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
        ]
    return found


def figures(seconds: float) -> list[Figure]:
    """All rates."""
    return [figure for rate in RATES for figure in at(rate, seconds)]


PROGRAM = Program("reported against served", figures, seconds=10, quick_seconds=3)

if __name__ == "__main__":
    PROGRAM.main()
