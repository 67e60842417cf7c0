"""A wave that lasts: what grows in its processes and files, whether it drifts, and whether its counts are the server's.

``python -m tests.performance.soak [--minutes 30] [--rate 5000]``. Every ten seconds the memory and the descriptors of
each process of the wave are looked at, and the size of each file. What is said of growth is of the time after the first
minute: by then every connection is made and the lists that are as long as some minutes are begun.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly, machine, table
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RATE = 5_000
WORKERS = 2
PAYLOADS = 10_000
SAMPLE_S = 10.0
SETTLED_S = 60.0
PATIENCE_S = 300.0
GROWTH_MB = 5.0
DRIFT_MS = 0.05
NS = 1_000_000_000
_ROLES = {"cli": "command", "engine.primary": "primary", "engine.worker": "worker"}


@dataclass(frozen=True, slots=True)
class Look:
    """A process at a moment: seconds since the command began, MB resident, MB that no file backs, descriptors."""

    at_s: float
    resident_mb: float
    own_mb: float
    descriptors: int


@dataclass(slots=True)
class Soak:
    """A wave as it was seen: looks by role and process id, sizes of its files by name, and what it left."""

    looks: dict[tuple[str, int], list[Look]] = field(default_factory=dict)
    files: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0
    lines: int = 0

    def look(self, command: int, folder: Path, at_s: float) -> None:
        """Look at the command, its processes and its files."""
        with suppress(psutil.Error):
            whole = psutil.Process(command)
            for process in (whole, *whole.children()):
                with suppress(psutil.Error, OSError, StopIteration):
                    seen = _seen(process, at_s)
                    self.looks.setdefault((_role(process), process.pid), []).append(seen)
        for path in folder.rglob("*"):
            with suppress(OSError):
                if path.is_file():
                    self.files.setdefault(path.name, []).append((at_s, path.stat().st_size))


def _role(process: psutil.Process) -> str:
    """StopIteration for a process that is none of the wave's."""
    modules = [part.removeprefix("inference_benchmarker.") for part in process.cmdline()]
    return next(role for module, role in _ROLES.items() if module in modules)


def _seen(process: psutil.Process, at_s: float) -> Look:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    kilobytes = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in status.splitlines())
        if name in ("VmRSS", "RssAnon")
    }
    return Look(at_s, kilobytes["VmRSS"] * 1024 / 1e6, kilobytes["RssAnon"] * 1024 / 1e6, process.num_fds())


@contextmanager
def _command(url: str, rate: int, seconds: float, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command at work, which prints into files of the folder; ended if it has not by itself."""
    flags = ["--factories-file", str(measure.HTTP), "--output-dir", str(folder / "runs"), "--sample-client-hw"]
    flags += ["--client-rps", str(rate), "--obs-time", f"{seconds:g}", "--workers", str(WORKERS)]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [*measure.BENCHMARK, *flags],
            env=measure.environment(url, PAYLOADS),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()  # its processes end with it
                process.wait()


def soak(url: str, rate: int, seconds: float) -> Soak:
    """Run the wave and look at it as long as it sends; RuntimeError where it could not measure."""
    found = Soak()
    with tempfile.TemporaryDirectory(prefix="benchmark_soak_") as name:
        folder, began = Path(name), time.monotonic()
        with _command(url, rate, seconds, folder) as command:
            while command.poll() is None and time.monotonic() < began + seconds + PATIENCE_S:
                if (at_s := time.monotonic() - began) < seconds:
                    found.look(command.pid, folder, at_s)
                with suppress(subprocess.TimeoutExpired):
                    command.wait(SAMPLE_S if at_s < seconds - SAMPLE_S else None)
        found.wall_s = time.monotonic() - began
        text = (folder / "err").read_text(errors="replace")
        summaries = list(folder.glob("runs/*/summary.json"))
        if command.returncode not in measure.MEASURED or not summaries:
            raise RuntimeError(f"benchmark ended with {command.returncode}:\n{text[-2000:]}")
        found.summary = json.loads(summaries[0].read_text(encoding="utf-8"))
        found.lines = text.count("\n")
    return found


def schedule_error_ms(log: NDArray[Any], t0_ns: int, rate: int, minute: slice) -> NDArray[np.float64]:
    """Server's arrival less due time, of the requests whose indices are in ``minute``.

    A payload's number is its request's index modulo ``PAYLOADS``; of those with one number the earlier came first.
    """
    order = np.argsort(log["id"], kind="stable")
    numbers = log["id"][order]
    turns = np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
    index = numbers + PAYLOADS * turns
    arrival = log["arrival_ns"][order] - t0_ns
    chosen = (index >= minute.start) & (index < minute.stop)
    error: NDArray[np.float64] = (arrival[chosen] - index[chosen] * NS // rate) / measure.NS_PER_MS
    return error


def growth_mb(looks: list[Look]) -> tuple[float, float]:
    """Of the memory that no file backs, after the first minute: the line through it from end to end, and its range."""
    at_s, own = np.array([(look.at_s, look.own_mb) for look in looks if look.at_s >= SETTLED_S]).T
    slope = np.polyfit(at_s, own, 1)[0] if len(at_s) > 1 else 0.0
    return float(slope * (at_s[-1] - at_s[0])), float(own.max() - own.min())


def _of_processes(found: Soak) -> Iterator[Figure]:
    for (role, pid), looks in sorted(found.looks.items()):
        if len(looks) < 3 or looks[-1].at_s < SETTLED_S:
            continue
        name = f"{role} {pid}" if role == "worker" else role
        line, spread = growth_mb(looks)
        yield Figure(f"{name}: growth after the first minute", line, "MB", below(GROWTH_MB))
        yield Figure(f"{name}: most less least of it", spread, "MB", below(GROWTH_MB))
        yield Figure(f"{name}: resident, most", max(look.resident_mb for look in looks), "MB")
        settled = [look.descriptors for look in looks if look.at_s >= SETTLED_S]
        yield Figure(f"{name}: descriptors, first and most after the first minute", settled[0])
        yield Figure("", max(settled))


def _of_files(found: Soak) -> Iterator[Figure]:
    for name, sizes in sorted(found.files.items(), key=lambda item: -item[1][-1][1]):
        (began, before), (ended, after) = sizes[0], sizes[-1]
        if after >= 1000 and ended > began:
            yield Figure(f"{name}: size; grows in an hour", after / 1e6, "MB")
            yield Figure("", (after - before) / (ended - began) * 3600 / 1e6, "MB")


def figures(seconds: float, rate: int = RATE) -> list[Figure]:
    """What is asked of a long wave, then every process and file."""
    with StampServer(delay_ms=1) as server:
        found = soak(server.url, rate, seconds)
        log = server.log()
    t0_ns, length = found.summary["window"]["t0_monotonic_ns"], round(min(60.0, seconds / 2)) * rate
    sent = found.summary["ledger"]["sent"]
    first = schedule_error_ms(log, t0_ns, rate, slice(0, length))
    last = schedule_error_ms(log, t0_ns, rate, slice(sent - length, sent))
    drift = float(np.median(last) - np.median(first))
    return [
        Figure("exit code", found.summary["exit_code"], "", exactly(0)),
        Figure("requests sent", sent, "", exactly(round(rate * seconds))),
        Figure("of them answered", found.summary["ledger"]["ok"], "", exactly(sent)),
        Figure("seen by the server", len(log), "", exactly(sent)),
        Figure("schedule error p50, last minute less first", drift, "ms", below(DRIFT_MS)),
        Figure("schedule error p99 about its median, first minute", _spread_ms(first), "ms"),
        Figure("the same, last minute", _spread_ms(last), "ms"),
        Figure("wall time beyond --obs-time", found.wall_s - seconds, "s"),
        Figure("lines printed while it ran", found.lines),
        *_of_processes(found),
        *_of_files(found),
    ]


def _spread_ms(errors: NDArray[np.float64]) -> float:
    return measure.percentile(np.abs(errors - np.median(errors)), 99)


PROGRAM = Program("a wave that lasts", figures, seconds=1800, quick_seconds=90)


def main() -> None:
    """The command line; the exit code is 1 where a figure falls short."""
    parser = argparse.ArgumentParser(description=PROGRAM.title)
    parser.add_argument("--minutes", type=float, default=PROGRAM.seconds / 60, help="default %(default)g")
    parser.add_argument("--rate", type=int, default=RATE, help="requests a second, default %(default)s")
    options = parser.parse_args()
    print(machine(), end="\n\n", flush=True)
    found = figures(60 * options.minutes, options.rate)
    print(table(f"{PROGRAM.title}: {options.minutes:g} min at {options.rate:,}/s", found), flush=True)
    raise SystemExit(any(figure.verdict == "short" for figure in found))


if __name__ == "__main__":
    main()
