"""The cost of a plan for a recorded day: the command's seconds and its largest memory, with each routing."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker import cli
from inference_benchmarker.version import SCHEMA_VERSION
from tests.capacities import found
from tests.performance.figures import Figure, Program, below
from tests.performance.fleet import ROUTINGS, day
from tests.performance.recording import peak_mb

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVICE_S = 0.02
_HERE = "tests.performance.planning"
_BEGIN = np.datetime64("2026-11-20T00:00:00", "us")


def write(path: Path, share: float) -> int:
    """A recording of the day, its stamps in ISO 8601, of which a share of the requests is left; their number."""
    draws, count = np.random.default_rng(1), 0
    with path.open("w", encoding="utf-8") as file:
        file.write("timestamp,path\n")
        for part in day().parts(draws):
            kept = part[: int(share * len(part))]
            stamps = np.datetime_as_string(_BEGIN + (kept * 1e6).astype("m8[us]"))
            file.writelines(f"{stamp},/invocations\n" for stamp in stamps)
            count += len(kept)
    return count


def write_capacity(folder: Path) -> None:
    """A search of four servers of 20 ms, with a model that fits."""
    folder.mkdir()
    reported = found()
    reported["twin"] |= {"services_s": [SERVICE_S] * 256, "limit": "p99<100ms"}
    reported["limits"][0] |= {"bound": 0.1, "allowed": 0.01}
    (folder / "capacity.json").write_text(json.dumps({"schema_version": SCHEMA_VERSION, **reported}))


def plan(folder: Path, routing: str) -> dict[str, float]:
    """In this process: seconds of the command, of its CPU, and its largest memory (MB)."""
    line = ["plan", str(folder / "c"), "--replay", str(folder / "day.csv"), "--seconds-to-create", "240"]
    begun, cpu = time.perf_counter(), time.process_time()
    code = cli.main([*line, "--routing", routing, "--json", "--output-dir", str(folder)])
    assert code == 0
    return {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu, "peak_mb": peak_mb()}


def of_a_day(folder: Path, share: float) -> Iterator[Figure]:
    """The figures, each routing in a process of its own."""
    write_capacity(folder / "c")
    yield Figure("requests of the day", write(folder / "day.csv", share))
    for routing in ROUTINGS:
        line = [sys.executable, "-m", _HERE, str(folder), routing]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        seen = json.loads(done.stdout.splitlines()[-1])
        name = routing.replace("_", " ")
        yield Figure(f"{name} routing: seconds", seen["seconds"], "s", below(60))
        yield Figure(f"{name} routing: seconds of CPU", seen["cpu"], "s")
        yield Figure(f"{name} routing: most memory", seen["peak_mb"], "MB", below(1000))


def figures(seconds: float) -> list[Figure]:
    """A day of which as many hundredths are left as there are seconds."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        return list(of_a_day(Path(folder), seconds / 100))


PROGRAM = Program("a plan for a recorded day", figures, seconds=100, quick_seconds=5)

if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] in ROUTINGS:
        print(json.dumps(plan(Path(sys.argv[1]), sys.argv[2])))
    else:
        PROGRAM.main()
