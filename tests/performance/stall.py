"""What the tool reports of a server that serves nobody for two seconds, against what users would have felt.

The theory. K servers, each request in service for exactly d, one FIFO queue, an arrival every 1/a, so a load
of r = a d / K < 1. Nobody is served for D seconds. Whoever arrives u after that began finds a u requests
waiting, which take r u to serve once service resumes, so the wait is

    w(u) = D + r u - u = D - (1 - r) u      for 0 <= u <= D / (1 - r), and nothing afterwards

which is as true of those who come after the stall and meet its backlog. The longest waits are those of the
first arrivals: of the a T requests of a wave of T seconds the share q waits longer than w(q T). With
q T < D / (1 - r)

    p99 of response time = D - 0.01 T (1 - r) + d

The figure held against is not this fluid one but the exact one: the queue of K servers walked through request
by request, all arrivals on time and the stall at the instant when the server says it began.

A generator that waits for an answer before it sends again hardly sends during the stall, and reports d: what
the 99 of 100 requests took that met none of it.
"""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING

import numpy as np

from tests.performance import measure
from tests.performance.figures import Figure, Program, below
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from numpy.typing import NDArray

RATE = 200
SERVERS = 8
SERVICE_S = 0.02
STALL_S = 2.0
# About what the command takes before its wave begins.
START_S = 1.5
NS = 1_000_000_000


def model_finish(
    arrivals: NDArray[np.int64], servers: int, service_ns: int, stall: tuple[int, int]
) -> NDArray[np.int64]:
    """When each arrival is done: FIFO, all service suspended from the first instant of `stall` to its last.

    All in ns of one clock; arrivals ascend.
    """
    began, ended = stall
    free = [int(arrivals[0])] * servers
    finish = np.empty_like(arrivals)
    for place, arrival in enumerate(arrivals.tolist()):
        start = max(arrival, free[0])
        if began <= start < ended:
            start = ended
        end = start + service_ns
        if start < began < end:
            end += ended - began
        heapq.heapreplace(free, end)
        finish[place] = end
    return finish


def fluid_p99_s(seconds: float) -> float:
    """The closed formula above."""
    load = RATE * SERVICE_S / SERVERS
    return STALL_S - 0.01 * seconds * (1 - load) + SERVICE_S


def stalled_wave(seconds: float) -> tuple[measure.Wave, tuple[int, int]]:
    """A wave with a stall after a third of it, and when that was on the wave's clock, in ns."""
    flags = ("--client-rps", str(RATE), "--obs-time", f"{seconds:g}", "--workers", "1")
    stalls: list[tuple[int, int]] = []
    with (
        StampServer(delay_ms=1e3 * SERVICE_S, servers=SERVERS) as server,
        measure.running(measure.HTTP, server.url, round(RATE * seconds), *flags) as (_, finish),
    ):
        timer = threading.Timer(START_S + seconds / 3, lambda: stalls.append(server.stall(STALL_S)))
        timer.start()
        wave = finish()
        timer.cancel()
    if not stalls:
        raise RuntimeError("the wave ended before the stall began")
    began, ended = stalls[0]
    return wave, (began - wave.t0_ns, ended - wave.t0_ns)


def figures(seconds: float) -> list[Figure]:
    """Measured beside theory."""
    wave, stall = stalled_wave(seconds)
    due = wave.column("due")
    theory_ms = (model_finish(due, SERVERS, round(SERVICE_S * NS), stall) - due) / measure.NS_PER_MS
    expected = measure.percentile(theory_ms, 99)
    measured = wave.reported_ms("response_time", "p99")
    deviation = 100 * abs(measured / expected - 1)
    latency = [Figure(f"latency {q}, reported", wave.reported_ms("latency", q), "ms") for q in ("p50", "p99")]
    return [
        Figure("response time p99, reported", measured, "ms"),
        Figure("response time p99, the model's", expected, "ms"),
        Figure("response time p99, the closed formula's", 1e3 * fluid_p99_s(seconds), "ms"),
        Figure("response time p99, reported off the model's by", deviation, "%", below(2)),
        *latency,
        Figure("response time p50, reported", wave.reported_ms("response_time", "p50"), "ms"),
        Figure("response time p50, the model's", measure.percentile(theory_ms, 50), "ms"),
        Figure("requests sent", len(wave.requests)),
    ]


PROGRAM = Program("a 2 s stall at 200/s", figures, seconds=20, quick_seconds=10)

if __name__ == "__main__":
    PROGRAM.main()
