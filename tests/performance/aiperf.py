"""What aiperf's streamed tokens cost: tokens a CPU second of all its processes, at two rates of 20-token streams.

It is run as ``--aiperf-only`` runs it, against the same server as the other measurements, so that its figures stand
beside those of our own clients in one run on one machine.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from inference_benchmarker.errors import BenchmarkError
from server_capacity import aiperf
from server_capacity.aiperf_export import read_export
from tests.performance.figures import Figure, Program, exactly
from tests.performance.stamp_server import StampServer
from tests.tokenizer import save_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RATES = (100, 500)
TOKENS = 20
FIRST_TOKEN_MS = 20.0
GAP_MS = 5.0
_SAMPLE_S = 0.1
_BODY = {"model": "words", "messages": [{"role": "user", "content": "1 2 3"}], "stream": True}


@dataclass(slots=True)
class CpuWatch:
    """CPU seconds of every process that a call starts, over the wall clock; those that have ended keep theirs."""

    samples: list[tuple[float, float]] = field(default_factory=list)
    _used: dict[int, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Of the whole call."""
        return self.samples[-1][1]

    def between(self, start: float, end: float) -> float:
        """Of an interval on the wall clock."""
        at, used = np.array(self.samples).T
        first, last = np.interp([start, end], at, used)
        return float(last - first)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sample until the block ends. What ran before is not counted."""
        ended = threading.Event()
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        thread = threading.Thread(target=self._watch, args=(ended, before))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _watch(self, ended: threading.Event, before: set[int]) -> None:
        while True:
            for child in psutil.Process().children(recursive=True):
                if child.pid not in before:
                    with suppress(psutil.Error):
                        times = child.cpu_times()
                        self._used[child.pid] = times.user + times.system
            self.samples.append((time.time(), sum(self._used.values())))
            if ended.wait(_SAMPLE_S):
                return


def measure(rate: int, seconds: float, environment: Mapping[str, str] = os.environ) -> list[Figure]:
    """One run at ``rate`` streams/s; RuntimeError where aiperf is not here or fails."""
    try:
        installation = aiperf.Installation.find(environment)
    except BenchmarkError as error:
        raise RuntimeError(str(error)) from None
    count = round(rate * seconds)
    watch = CpuWatch()
    with (
        tempfile.TemporaryDirectory() as scratch,
        StampServer(delay_ms=FIRST_TOKEN_MS, tokens=TOKENS, gap_ms=GAP_MS) as server,
    ):
        folder = Path(scratch)
        arguments = _arguments(server.url, rate, count, folder)
        with watch.watching():
            aiperf.run(installation, arguments, folder, environment, lambda _: None)
        found = read_export(folder, 1.0, interrupted=False)
        if found is None:
            raise RuntimeError(f"aiperf failed:\n{aiperf.failure(folder, ())}")
    result, window = found
    streaming, tokens, at = watch.between(window.start, window.end), result.ok * TOKENS, f"aiperf, {rate:,} streams/s"
    return [
        Figure(f"{at}: streams that succeeded", result.ok, "", exactly(count)),
        Figure(f"{at}: rate", result.requests / result.duration_s, "/s"),
        Figure(f"{at}: CPU while it streams", streaming, "s"),
        Figure(f"{at}: tokens a CPU second while it streams", tokens / streaming, "/s"),
        Figure(f"{at}: CPU of the whole run, start and end included", watch.total, "s"),
        Figure(f"{at}: tokens a CPU second of the whole run", tokens / watch.total, "/s"),
        Figure(f"{at}: TTFT p50 (endpoint: {FIRST_TOKEN_MS:g} ms)", 1e3 * result.times["ttft"]["p50"], "ms"),
        Figure(f"{at}: TTFT p99", 1e3 * result.times["ttft"]["p99"], "ms"),
    ]


def _arguments(url: str, rate: int, count: int, folder: Path) -> list[str]:
    inputs = folder / "inputs.json"
    inputs.write_text(json.dumps({"data": [{"session_id": "0", "payloads": [_BODY]}]}))
    given = {
        "url": url,
        "model": "words",
        "tokenizer": save_tokenizer(folder / "words"),
        "endpoint-type": "chat",
        "input-file": inputs,
        "custom-dataset-type": "inputs_json",
        "request-rate": rate,
        "arrival-pattern": "constant",
        "request-count": count,
        "ui": "none",
        "artifact-dir": folder,
    }
    switches = ("--streaming", "--no-gpu-telemetry", "--no-server-metrics")
    return ["profile", *switches, *(word for name, value in given.items() for word in (f"--{name}", str(value)))]


def figures(seconds: float) -> list[Figure]:
    """Both rates, one after the other."""
    return [figure for rate in RATES for figure in measure(rate, seconds)]


PROGRAM = Program("aiperf's streamed tokens", figures, seconds=15, quick_seconds=4)

if __name__ == "__main__":
    PROGRAM.main()
