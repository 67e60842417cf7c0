"""Whether a worker grows with its requests: resident memory at 2,000/s, from 10 s to the end of the wave."""

from __future__ import annotations

import time

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly
from tests.performance.stamp_server import StampServer

RATE = 2_000
SETTLED_S = 10.0
PAYLOADS = 10_000
SAMPLE_S = 0.5
PATIENCE_S = 60.0


def sampled_wave(seconds: float) -> tuple[measure.Wave, list[tuple[int, float]], int]:
    """The wave, (ns of CLOCK_MONOTONIC, resident MB of the worker) twice a second, requests served."""
    samples: list[tuple[int, float]] = []
    flags = ("--client-rps", str(RATE), "--obs-time", f"{seconds:g}", "--workers", "1")
    end = time.monotonic() + seconds + PATIENCE_S
    with (
        StampServer(delay_ms=1) as server,
        measure.running(measure.HTTP, server.url, PAYLOADS, *flags) as (command, finish),
    ):
        while command.poll() is None and time.monotonic() < end:
            now = time.monotonic_ns()
            samples += [(now, megabytes) for megabytes in measure.worker_memory_mb(command.pid)]
            time.sleep(SAMPLE_S)
        return finish(), samples, len(server.log())


def figures(seconds: float) -> list[Figure]:
    """Growth between the two instants, each the median of five samples around it."""
    wave, samples, served = sampled_wave(seconds)
    settled, last = wave.t0_ns + int(SETTLED_S * 1e9), wave.t0_ns + int(seconds * 1e9)
    within = [megabytes for instant, megabytes in samples if settled <= instant <= last]
    if len(within) < 10:
        raise RuntimeError(f"{len(within)} samples after {SETTLED_S:g} s are too few: give it more --seconds")
    early, late = sorted(within[:5])[2], sorted(within[-5:])[2]
    return [
        Figure(f"growth from {SETTLED_S:g} s to {seconds:g} s at 2,000/s", late - early, "MB", below(10)),
        Figure(f"resident at {SETTLED_S:g} s", early, "MB"),
        Figure(f"resident at {seconds:g} s", late, "MB"),
        Figure("largest in between", max(within), "MB"),
        Figure("requests sent", len(wave.requests), "", exactly(served)),
    ]


PROGRAM = Program("memory of a worker", figures, seconds=300, quick_seconds=25)

if __name__ == "__main__":
    PROGRAM.main()
