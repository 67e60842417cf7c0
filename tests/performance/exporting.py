"""The cost of ``--export``: CPU of the command, and schedule lag, of waves with it and without, in turn.

1,000 requests a second with 50 labels and two values of the user's own, 2 workers, in silence. The page is read every
second, as Prometheus reads it; a collector takes the figures every second, five times as often as it does usually.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from statistics import median
from typing import TYPE_CHECKING
from urllib.request import urlopen

import psutil

from tests.performance import measure
from tests.performance.figures import Figure, Program, below
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterator

LABELLED = measure.HERE / "factories_labelled.py"
RATE, WORKERS, DELAY_MS = 1_000, 2, 20.0
SETTLING_S, LAST_S, EVERY_S = 3.0, 2.0, 1.0
PAIRS = 5
PAYLOADS = 10_000
PLAIN, PAGE, PUSH = "without", "prometheus", "otlp"


class Reader:
    """Reads a page every second from its making to its end: how often it was, and the size in the end."""

    def __init__(self, url: str) -> None:
        self.times = self.size = 0
        self._url = url
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def close(self) -> None:
        """Read no more."""
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._ended.wait(EVERY_S):
            with suppress(OSError), urlopen(self._url, timeout=5) as answer:  # noqa: S310 - our own
                self.size = len(answer.read())
                self.times += 1


class _Collector(BaseHTTPRequestHandler):
    sizes: list[int]

    def do_POST(self) -> None:
        """Take the figures."""
        self.sizes.append(len(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


@contextmanager
def taking(kind: str) -> Iterator[tuple[list[str], list[int]]]:
    """Flags of a wave whose figures are taken meanwhile; last, the bytes of each taking."""
    sizes: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if kind == PAGE:
        reader = Reader(f"http://127.0.0.1:{port}/metrics")
        try:
            yield ["--export", f"prometheus:{port}", "--export-wait", "0"], sizes
        finally:
            reader.close()
            sizes += [reader.size] * reader.times
    elif kind == PUSH:
        handler = type("Handler", (_Collector,), {"sizes": sizes})
        with HTTPServer(("127.0.0.1", port), handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
            thread.start()
            try:
                yield ["--export", f"otlp=http://127.0.0.1:{port}"], sizes
            finally:
                server.shutdown()
                thread.join()
    else:
        yield [], sizes


def wave(kind: str, url: str, seconds: float) -> tuple[float, float, int]:
    """The share of a core that the command uses in the middle of a wave, its lag p99 in ms, the size of a taking."""
    length = SETTLING_S + seconds + LAST_S
    load = ("--client-rps", str(RATE), "--obs-time", f"{length:g}", "--workers", str(WORKERS))
    with (
        taking(kind) as (flags, sizes),
        measure.running(LABELLED, url, PAYLOADS, *load, *flags) as (command, finish),
    ):
        measure.wait_for_reports(measure.output_dir(command.pid))
        time.sleep(SETTLING_S)
        begun, used = time.monotonic(), _cpu_s(command.pid)
        time.sleep(seconds)
        share = (_cpu_s(command.pid) - used) / (time.monotonic() - begun)
        found = finish()
    if kind != PLAIN and len(sizes) < seconds / EVERY_S / 2:
        raise RuntimeError(f"the figures were taken {len(sizes)} times in {seconds:g} s")
    return share, found.reported_ms("lag", "p99"), max(sizes, default=0)


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, those of threads that have ended included: each reader of the page has one."""
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def figures(seconds: float) -> list[Figure]:
    """Waves of the three kinds in turn; the differences are of those of one turn, and medians are shown."""
    os.environ["OTEL_METRIC_EXPORT_INTERVAL"] = f"{1000 * EVERY_S:.0f}"
    with StampServer(delay_ms=DELAY_MS) as server:
        turns = [{kind: wave(kind, server.url, seconds) for kind in (PLAIN, PAGE, PUSH)} for _ in range(PAIRS)]
    found = [
        Figure("the command without", 100 * median(turn[PLAIN][0] for turn in turns), "% of a core"),
        Figure("its lag p99", median(turn[PLAIN][1] for turn in turns), "ms"),
    ]
    for kind in (PAGE, PUSH):
        more = [100 * (turn[kind][0] - turn[PLAIN][0]) for turn in turns]
        late = [turn[kind][1] - turn[PLAIN][1] for turn in turns]
        found += [
            Figure(f"{kind}: the command uses more", median(more), "% of a core", below(3)),
            Figure(f"{kind}: of the pairs the least", min(more), "% of a core"),
            Figure(f"{kind}: the most", max(more), "% of a core"),
            Figure(f"{kind}: lag p99 with it", median(turn[kind][1] for turn in turns), "ms"),
            Figure(f"{kind}: more than without, of the pairs the least", min(late), "ms"),
            Figure(f"{kind}: the median", median(late), "ms"),
            Figure(f"{kind}: the most", max(late), "ms"),
            Figure(f"{kind}: size of a taking", max(turn[kind][2] for turn in turns) / 1e3, "kB"),
        ]
    return found


PROGRAM = Program("figures that are handed on", figures, seconds=15, quick_seconds=4)

if __name__ == "__main__":
    PROGRAM.main()
