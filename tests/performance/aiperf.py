"""What a streamed token costs: OpenAIClient in a wave of one worker, and aiperf, in turns on the same server.

aiperf is run as ``--aiperf-only`` runs it. CPU is that of all its processes while it streams, and all of our worker's.
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
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import psutil

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.packaged import demo_tokenizer
from server_capacity.aiperf import installation as aiperf
from server_capacity.aiperf.export import read_export
from tests.performance import clients
from tests.performance.awake import kept_awake
from tests.performance.clients import TOKENS
from tests.performance.figures import Figure, Program, at_least, exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.performance.stamp_server import StampServer

RATES = {100: 10.0, 500: 6.0}  # how many times aiperf's tokens a CPU second ours must be
TURNS = 3
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


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of aiperf was, and what it cost."""

    ok: int
    rate: float
    ttft_ms: dict[str, float]
    streaming_cpu_s: float
    whole_cpu_s: float

    @property
    def tokens_a_cpu_second(self) -> float:
        """While it streams: its start and end are not counted."""
        return self.ok * TOKENS / self.streaming_cpu_s


def run(rate: int, seconds: float, server: StampServer, environment: Mapping[str, str] = os.environ) -> Run:
    """One run at ``rate`` streams/s; RuntimeError where aiperf is not here or fails."""
    try:
        installation = aiperf.Installation.find(environment)
    except BenchmarkError as error:
        raise RuntimeError(str(error)) from None
    watch = CpuWatch()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        arguments = _arguments(server.url, rate, round(rate * seconds), folder)
        with watch.watching():
            aiperf.run(installation, arguments, folder, environment, lambda _: None)
        found = read_export(folder, 1.0, interrupted=False)
        if found is None:
            raise RuntimeError(f"aiperf failed:\n{aiperf.failure(folder, ())}")
    result, window = found
    ttft_ms = {name: 1e3 * value for name, value in result.times["ttft"].items()}
    streaming = watch.between(window.start, window.end)
    return Run(result.ok, result.requests / result.duration_s, ttft_ms, streaming, watch.total)


def _arguments(url: str, rate: int, count: int, folder: Path) -> list[str]:
    inputs = folder / "inputs.json"
    inputs.write_text(json.dumps({"data": [{"session_id": "0", "payloads": [_BODY]}]}))
    given = {
        "url": url,
        "model": "words",
        "tokenizer": str(demo_tokenizer()),
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


def side_by_side(rate: int, seconds: float, condition: str, least: float) -> list[Figure]:
    """Both take turns on one server; the figure is the median of each turn's ratio."""
    with clients.streaming_server() as server:
        turns = [(clients.tokens_a_cpu_second(rate, seconds, server), run(rate, seconds, server)) for _ in range(TURNS)]
    theirs = [run for _, run in turns]
    at = f"{rate:,} streams/s, {condition}"

    def middle(name: str, of: Callable[[Run], float], unit: str = "") -> Figure:
        return Figure(f"{at}: aiperf: {name}", median(map(of, theirs)), unit)

    return [
        Figure(f"{at}: aiperf: streams that succeeded", min(r.ok for r in theirs), "", exactly(round(rate * seconds))),
        middle("rate", lambda r: r.rate, "/s"),
        middle("CPU of the whole run, start and end included", lambda r: r.whole_cpu_s, "s"),
        middle(f"TTFT p50 (endpoint: {clients.FIRST_TOKEN_MS:g} ms)", lambda r: r.ttft_ms["p50"], "ms"),
        middle("TTFT p99", lambda r: r.ttft_ms["p99"], "ms"),
        middle("tokens a CPU second while it streams", lambda r: r.tokens_a_cpu_second, "/s"),
        Figure(f"{at}: OpenAIClient: tokens a CPU second of the worker", median(ours for ours, _ in turns), "/s"),
        Figure(f"{at}: times aiperf's", median(o / r.tokens_a_cpu_second for o, r in turns), "", at_least(least)),
    ]


def figures(seconds: float) -> list[Figure]:
    """Both rates, on cores that may sleep and on cores that are kept awake."""
    asleep = [side_by_side(rate, seconds, "cores may sleep", least) for rate, least in RATES.items()]
    with kept_awake():
        awake = [side_by_side(rate, seconds, "cores kept awake", least) for rate, least in RATES.items()]
    return [figure for found in (*asleep, *awake) for figure in found]


PROGRAM = Program("a streamed token beside aiperf's", figures, seconds=10, quick_seconds=4)

if __name__ == "__main__":
    PROGRAM.main()
