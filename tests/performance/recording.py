"""What a recording costs: memory and time to read it, and what a worker pays for an arrival and for its row."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.performance.figures import Figure, Program, below
from tests.recordings import taken

FEW, MANY = 10_000, 10_000_000
RATE = 2_000
_HERE = "tests.performance.recording"


def write(path: Path, rows: int) -> None:
    """Rows of a service at 2,000/s, with bursts, some columns each."""
    draw = np.random.default_rng(1)
    at = 0.0
    with path.open("w", encoding="utf-8") as file:
        file.write("timestamp,path,tokens_in,tokens_out\n")
        for begin in range(0, rows, 100_000):
            gaps = draw.exponential(1 / RATE, min(100_000, rows - begin))
            times = at + np.cumsum(gaps)
            at = float(times[-1])
            file.writelines(
                f"{each:.6f},/v1/chat/{number % 97},{number % 4093},{number % 509}\n"
                for number, each in enumerate(times.tolist())
            )


def read(path: Path) -> dict[str, Any]:
    """In this process: the largest resident memory (MB), and seconds, with what a worker pays afterwards."""
    before = peak_mb()
    begun = time.perf_counter()
    replay = taken(path)
    seconds = time.perf_counter() - begun
    reading = peak_mb()
    assert replay.schedule is not None
    begun = time.perf_counter_ns()
    arrivals = sum(1 for _ in replay.schedule.dues(0, 2, 1 << 40))
    due_us = (time.perf_counter_ns() - begun) / 1000 / arrivals
    from inference_benchmarker.recording.rows import RowFile

    found = RowFile(replay.schedule.kept.folder)  # type: ignore[attr-defined]
    begun = time.perf_counter_ns()
    for index in range(0, 10_000, 2):
        found.row(index)
    row_us = (time.perf_counter_ns() - begun) / 1000 / 5_000
    return {
        "before": before,
        "reading": reading,
        "seconds": seconds,
        "due_us": due_us,
        "row_us": row_us,
        "after": peak_mb(),
    }


def peak_mb() -> float:
    """The most memory of its own that this process has had: pages of files, which the system takes back, left out."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(status["VmHWM"].split()[0]) / 1024


def _of(path: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", _HERE, str(path)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def figures(seconds: float) -> list[Figure]:
    """The larger file has ``seconds`` x 100,000 rows."""
    many = int(seconds * 100_000)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        few_file, many_file = Path(folder) / "few.csv", Path(folder) / "many.csv"
        write(few_file, FEW)
        write(many_file, many)
        few, found = _of(few_file), _of(many_file)
    return [
        Figure(f"resident at most, {FEW:,} rows", few["reading"], "MB"),
        Figure(f"resident at most, {many:,} rows", found["reading"], "MB", below(few["reading"] + 60)),
        Figure("reading", found["seconds"] / many * 1e6, "us a row"),
        Figure("a due time, for a worker", found["due_us"], "us", below(1)),
        Figure("a row, for build", found["row_us"], "us"),
    ]


PROGRAM = Program("a recording of ten million rows", figures, seconds=100, quick_seconds=5)

if __name__ == "__main__":
    if len(sys.argv) == 2 and Path(sys.argv[1]).is_file():
        print(json.dumps(read(Path(sys.argv[1]))))
    else:
        PROGRAM.main()
