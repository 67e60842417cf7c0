"""Whether one worker keeps its schedule while it reads 1,000 new token streams a second.

A stream is 20 tokens: the first after 20 ms, then one each 5 ms; about 115 streams are open at a time.
"""

from __future__ import annotations

import numpy as np

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly
from tests.performance.stamp_server import StampServer

RATE = 1_000
TOKENS = 20
FIRST_TOKEN_MS = 20.0
GAP_MS = 5.0
WARMUP_S = 1


def figures(seconds: float) -> list[Figure]:
    """One wave; its lag, and whether all tokens were seen when they came."""
    count = round(RATE * seconds)
    flags = ("--client-rps", str(RATE), "--obs-time", f"{seconds:g}", "--warmup", str(WARMUP_S))
    with StampServer(delay_ms=FIRST_TOKEN_MS, tokens=TOKENS, gap_ms=GAP_MS) as server:
        wave = measure.run(measure.SSE, server.url, count + 2 * RATE * WARMUP_S, *flags)
        joined = measure.arrivals(server.log(), wave)
    error = measure.schedule_error_ms(joined)
    gaps_ms = np.concatenate(joined["gaps"].to_numpy()) / 1e3
    ttft_ms = (wave.column("first_token") - wave.column("sent")) / measure.NS_PER_MS
    lag = "1,000 streams/s of 20 tokens: lag"
    return [
        Figure(f"{lag} p99", measure.percentile(wave.lag_ms, 99), "ms", below(1.5)),
        Figure(f"{lag} p50", measure.percentile(wave.lag_ms, 50), "ms"),
        Figure(f"{lag} max", float(wave.lag_ms.max()), "ms"),
        Figure("streams sent", len(wave.requests), "", exactly(count)),
        Figure("streams of 20 chunks", int((joined["chunks"] == TOKENS).sum()), "", exactly(count)),
        Figure("schedule error at the server p99", measure.percentile(error, 99), "ms"),
        Figure(f"TTFT p50 (endpoint: {FIRST_TOKEN_MS:g} ms)", measure.percentile(ttft_ms, 50), "ms"),
        Figure(f"token gap p50 (endpoint: {GAP_MS:g} ms)", measure.percentile(gaps_ms, 50), "ms"),
        Figure(f"token gap p99 (endpoint: {GAP_MS:g} ms)", measure.percentile(gaps_ms, 99), "ms"),
        Figure("CPU of the worker", 1e6 * wave.worker_cpu_s / len(wave.requests), "us/stream"),
    ]


PROGRAM = Program("token streams on one worker", figures, seconds=10, quick_seconds=3)

if __name__ == "__main__":
    PROGRAM.main()
