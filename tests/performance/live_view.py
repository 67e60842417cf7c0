"""The CPU that the live view takes of the command: waves on a terminal of 200 columns, and with --quiet, in turn.

A minute of the wave is over when it begins to count, so that every line is drawn in full. Both read what the workers
report; the difference is what is drawn, twice a second, and what is computed for it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import tempfile
import termios
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.performance import measure
from tests.performance.figures import Figure, Program, below
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE, WORKERS = 1_000, 2
COLUMNS, ROWS = 200, 50
PAIRS = 3
LEAD_S = 62.0  # the view shows a minute
AFTER_S = 3.0
PAYLOADS = 10_000
DELAY_MS, TOKENS, GAP_MS = 20.0, 20, 5.0
LIMITS = ("p99<200ms", "latency.p95<100ms", "success>=99%", "rate>=99%")


def cpu_share(factories: Path, server: StampServer, lead_s: float, seconds: float, *, shown: bool) -> float:
    """The share of a core that the command uses in so many seconds of a wave, on a terminal or in silence."""
    with tempfile.TemporaryDirectory(prefix="benchmark_perf_") as directory:
        wave = ["--client-rps", str(RATE), "--obs-time", f"{lead_s + seconds + AFTER_S:g}", "--workers", str(WORKERS)]
        limits = [f"--slo={limit}" for limit in LIMITS]
        flags = ["--factories-file", str(factories), "--output-dir", directory, *wave, *limits]
        master, slave = _terminal()
        process = subprocess.Popen(
            [*measure.BENCHMARK, *flags, *([] if shown else ["--quiet"])],
            env={**measure.environment(server.url, PAYLOADS), "TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=slave,
        )
        os.close(slave)
        drain = threading.Thread(target=_drain, args=(master,))
        drain.start()
        try:
            measure.wait_for_reports(Path(directory))
            time.sleep(lead_s)
            begun, used = time.monotonic(), measure.cpu_s(process.pid)
            time.sleep(seconds)
            used = measure.cpu_s(process.pid) - used
            share = used / (time.monotonic() - begun)
            if process.wait(measure.PATIENCE_S) not in measure.MEASURED:
                raise RuntimeError(f"benchmark ended with {process.returncode}")
            return share
        finally:
            process.kill()
            process.wait()
            drain.join()


def _terminal() -> tuple[int, int]:
    """The two ends of a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return master, slave


def _drain(master: int) -> None:
    """Read what is shown until nobody shows anything any more."""
    try:
        while os.read(master, 1 << 16):
            pass
    except OSError:
        os.close(master)


def _shares(factories: Path, server: StampServer, seconds: float) -> Iterator[tuple[float, float]]:
    lead_s = min(LEAD_S, 3 * seconds)
    for _ in range(PAIRS):
        yield (
            cpu_share(factories, server, lead_s, seconds, shown=True),
            cpu_share(factories, server, lead_s, seconds, shown=False),
        )


def figures(seconds: float) -> list[Figure]:
    """Pairs of waves of requests, and of streams; medians."""
    with StampServer(delay_ms=DELAY_MS) as server:
        requests = list(_shares(measure.HTTP, server, seconds))
    with StampServer(delay_ms=DELAY_MS, tokens=TOKENS, gap_ms=GAP_MS) as server:
        streams = list(_shares(measure.SSE, server, seconds))
    return [*_reported("requests", requests), *_reported("streams", streams)]


def _reported(name: str, pairs: list[tuple[float, float]]) -> Iterator[Figure]:
    drawn = [100 * (shown - silent) for shown, silent in pairs]
    yield Figure(f"{RATE:,} {name}/s, {COLUMNS} columns: the live view", median(drawn), "% of a core", below(3))
    yield Figure("of the pairs the least", min(drawn), "% of a core")
    yield Figure("the most", max(drawn), "% of a core")
    yield Figure("the command in silence", 100 * median(silent for _, silent in pairs), "% of a core")


PROGRAM = Program("redraw of the live view", figures, seconds=20, quick_seconds=4)

if __name__ == "__main__":
    PROGRAM.main()
