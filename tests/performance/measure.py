"""Runs waves of the tool as a user would, and reads what the server saw of them.

Times are in milliseconds where a name ends in _ms; instants are int64 ns after the start of the wave.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
HTTP = HERE / "factories_http.py"
RAW = HERE / "factories_raw.py"
SSE = HERE / "factories_sse.py"
BENCHMARK = (sys.executable, "-m", "inference_benchmarker.cli")
# The wave was measured, whatever its verdict: valid, a threshold missed, the client was the limit.
MEASURED = (0, 1, 3)
NS_PER_MS = 1e6
PATIENCE_S, BEGINNING_S = 600.0, 60.0


@dataclass(frozen=True, slots=True)
class Wave:
    """What a run of the command left behind: summary, records by index, wall time, exit code."""

    summary: dict[str, Any]
    requests: pd.DataFrame
    wall_s: float
    exit_code: int

    @property
    def t0_ns(self) -> int:
        """The start of the wave on CLOCK_MONOTONIC."""
        return int(self.summary["window"]["t0_monotonic_ns"])

    def column(self, name: str) -> NDArray[np.int64]:
        """A column of the records without missing values."""
        return self.requests[name].to_numpy(dtype=np.int64)

    @property
    def lag_ms(self) -> NDArray[np.float64]:
        """How late the client took each arrival up."""
        return (self.column("sent") - self.column("build_ns") - self.column("due")) / NS_PER_MS

    @property
    def latency_ms(self) -> NDArray[np.float64]:
        """From sending to the last byte, as the client saw it."""
        return (self.column("done") - self.column("sent")) / NS_PER_MS

    @property
    def worker_cpu_s(self) -> float:
        """User and system time of all workers between the start and the end of the wave."""
        return float(sum(worker["cpu_s"] for worker in self.summary["client"]["workers"]))

    def reported_ms(self, metric: str, quantile: str) -> float:
        """A percentile as the summary has it: ``reported_ms("latency", "p99")``."""
        return float(self.summary[metric][quantile]) * 1e3

    def ledger(self, entry: str) -> int:
        """A count of the ledger, over all workers."""
        ledger = self.summary["ledger"]
        return int(ledger.get("total", ledger)[entry])


@contextlib.contextmanager
def running(
    factories: Path, url: str, payloads: int, *flags: str
) -> Iterator[tuple[subprocess.Popen[str], Callable[[], Wave]]]:
    """The command at work: its process and a function that waits for the wave and reads it.

    `payloads` is how many numbers the factories make: at least one an arrival where records and log are to be
    joined.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark_perf_") as directory:
        arguments = ["--factories-file", str(factories), "--output-dir", directory, "--quiet", *flags]
        started = time.monotonic()
        process = subprocess.Popen(
            [*BENCHMARK, *arguments],
            env=environment(url, payloads),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

        def finish() -> Wave:
            output, _ = process.communicate(timeout=PATIENCE_S)
            wall_s = time.monotonic() - started
            directories = list(Path(directory).glob("*_benchmark*"))
            if process.returncode not in MEASURED or len(directories) != 1:
                raise RuntimeError(f"benchmark ended with {process.returncode}:\n{output}")
            return load(directories[0], wall_s, process.returncode)

        try:
            yield process, finish
        finally:
            _end(process)


def run(factories: Path, url: str, payloads: int, *flags: str) -> Wave:
    """A whole wave of the command; RuntimeError with its output where it could not measure."""
    with running(factories, url, payloads, *flags) as (_, finish):
        return finish()


def output_dir(command: int) -> Path:
    """Where a command that is running puts its run directory."""
    while "--output-dir" not in (arguments := psutil.Process(command).cmdline()):  # it is only just there
        time.sleep(0.05)
    return Path(arguments[arguments.index("--output-dir") + 1])


def wait_for_reports(directory: Path) -> None:
    """Until a wave whose run directory lies there has reported some hundred requests."""
    deadline = time.monotonic() + BEGINNING_S
    while time.monotonic() < deadline:
        if any(path.stat().st_size > 1 << 14 for path in directory.glob("*/spool.bin")):
            return
        time.sleep(0.1)
    raise RuntimeError("the wave does not begin")


def environment(url: str, payloads: int) -> Mapping[str, str]:
    """Ours, with what the factories read and the repository importable from anywhere."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "BENCHMARK_PERF_URL": url, "BENCHMARK_PERF_N": str(payloads)}


def load(directory: Path, wall_s: float, exit_code: int) -> Wave:
    """The wave of a run directory."""
    summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
    requests = pd.read_parquet(directory / "requests.parquet")
    requests = requests[requests["index"] >= 0].sort_values("index", ignore_index=True)
    return Wave(summary, requests, wall_s, exit_code)


def _end(process: subprocess.Popen[str]) -> None:
    """The command leads a session of its own: what it left behind is in its group."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_worker(command_line: list[str]) -> bool:
    return any(part.startswith("inference_benchmarker.engine.worker") for part in command_line)


def workers(command: int) -> list[psutil.Process]:
    """The worker processes below the command with this process id; empty where none runs."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        below = psutil.Process(command).children(recursive=True)
        return [process for process in below if _is_worker(process.cmdline())]
    return []


def worker_memory_mb(command: int) -> list[float]:
    """Resident memory of each worker below the command with this process id, in MB; empty where none runs."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return [process.memory_info().rss / 1e6 for process in workers(command)]
    return []


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, all its threads', to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="utf-8").split()[0]) for task in tasks) / 1e9


def arrivals(log: NDArray[Any], wave: Wave) -> pd.DataFrame:
    """Records joined with the server's stamps: the records' columns, arrival and answered in wave time.

    A payload's number is its request's index; numbers past the last index are the warm-up's.
    """
    stamps = pd.DataFrame(
        {
            "index": log["id"],
            "arrival": log["arrival_ns"] - wave.t0_ns,
            "answered": log["answered_ns"] - wave.t0_ns,
        }
    )
    joined = wave.requests.merge(stamps, on="index", validate="one_to_one")
    return joined.sort_values("index", ignore_index=True)


def percentile(values: NDArray[Any], share: float) -> float:
    """The value that `share` percent are not above; NaN when there are none."""
    return float(np.percentile(values, share)) if len(values) else float("nan")


def schedule_error_ms(joined: pd.DataFrame) -> NDArray[np.float64]:
    """How far off the plan each request reached the server, less the median of all: the way there."""
    offset = (joined["arrival"] - joined["due"]).to_numpy() / NS_PER_MS
    error: NDArray[np.float64] = np.abs(offset - np.median(offset))
    return error


def gap_cv(instants: NDArray[np.int64]) -> float:
    """Coefficient of variation of the gaps between arrivals: 0 is even, 1 is Poisson."""
    gaps = np.diff(np.sort(instants))
    return float(gaps.std() / gaps.mean())


def rate(joined: pd.DataFrame) -> float:
    """Arrivals a second: the slope of arrivals over index."""
    index = joined["index"].to_numpy(dtype=np.float64)
    arrival = joined["arrival"].to_numpy(dtype=np.float64)
    index, arrival = index - index.mean(), arrival - arrival.mean()
    return float(1e9 * (index @ index) / (index @ arrival))
