"""Waves of any size: each reader of a run directory of 100 million requests, in a process of its own.

``python -m tests.performance.size [--requests N] [--folder FOLDER]``: the directories are made up, in the system's
temporary folder where no other is named, and deleted at the end. A wave of 10,000/s is that large after 2.8 hours.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.performance.cost import Cost, cost_of
from tests.performance.figures import Figure, at_least, below, machine, table
from tests.performance.made_up import make_spool
from tests.performance.measure import BENCHMARK, MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUESTS = 100_000_000
COMPARED = "--compare of two"
MOST_BYTES = 1_000_000_000
LEAST_PER_CPU_S = 2_000_000
ROOM = 110  # bytes a request: a spool, the file that is made of it, and the file of the other wave
# Each is given a run directory; what is computed must be the same however it is read.
_PYTHON = {
    "Wave.load(...).summary": "print(wave.summary.latency.percentile(99))",
    "Wave.load(...).verdict": "print(wave.verdict.word)",
    "frame(columns, where)": """
frame = wave.frame(["sent", "done"], where=[("outcome", "==", "failed")])
print(len(frame), (frame["done"] - frame["sent"]).mean())
""",
    "batches(columns)": """
print(sum((frame["done"] - frame["sent"]).sum() for frame in wave.batches(["sent", "done"])))
""",
    "dataset(), by Arrow": """
import pyarrow.compute as pc
latency = {"label": pc.field("label"), "ns": pc.field("done") - pc.field("sent")}
scanner = wave.dataset().scanner(columns=latency, filter=pc.field("outcome") == "ok")
print(max(pc.max(batch.column("ns")).as_py() for batch in scanner.to_batches() if len(batch)))
""",
}
_LOAD = "import sys\nfrom inference_benchmarker import Wave\nwave = Wave.load(sys.argv[1])\n"


def figures(requests: int, folder: Path) -> Iterator[Figure]:
    """Each reader's wall time, requests a CPU second with its start, and most memory."""
    for name, cost in costs(requests, folder).items():
        waves = 2 if name == COMPARED else 1
        yield Figure(f"{name}: wall", cost.wall_s, "s")
        yield Figure(f"{name}: requests a CPU second", waves * requests / cost.cpu_s, "", at_least(LEAST_PER_CPU_S))
        yield Figure(f"{name}: most memory", cost.most_bytes / 1e6, "MB", below(MOST_BYTES / 1e6))


def costs(requests: int, folder: Path) -> dict[str, Cost]:
    """That of each reader, of one wave of so many requests or of two of them."""
    runs = [made_up(requests, folder / str(seed), seed) for seed in (1, 2)]
    (base, put_together), (new, _) = runs
    pictures = str(folder / "plots")
    commands = {
        "benchmark report": (*BENCHMARK, "report", base),
        COMPARED: (*BENCHMARK, "--compare", base, new),
        "--plot": (*BENCHMARK, "--plot", base, "--plot-output-dir", pictures),
        **{name: (sys.executable, "-c", _LOAD + code, base) for name, code in _PYTHON.items()},
    }
    return {"put together": put_together, **{name: _measured(name, *command) for name, command in commands.items()}}


def made_up(requests: int, folder: Path, seed: int) -> tuple[str, Cost]:
    """A wave's run directory, and the cost of putting it together."""
    path = str(make_spool(folder, requests, seed).path)
    return path, _measured("put together", *BENCHMARK, "report", path)


def _measured(name: str, *command: str) -> Cost:
    cost = cost_of(*command)
    if cost.code not in MEASURED:
        raise RuntimeError(f"{name}: exit code {cost.code}")
    print(f"{name}: {cost.wall_s:.1f} s, {cost.most_bytes / 1e6:.0f} MB", file=sys.stderr, flush=True)
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.performance.size", description=__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS, help=f"of each wave (default {REQUESTS:,})")
    parser.add_argument("--folder", type=Path, help="where the disk has room (default: the temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        needed, free = ROOM * options.requests, shutil.disk_usage(made).free
        print(f"{machine()}\n\n{needed / 1e9:,.3g} GB of disk are needed, {free / 1e9:,.3g} GB are free.", flush=True)
        if needed > free:
            raise SystemExit(f"{made}: too little room; give another --folder, or fewer --requests.")
        found = list(figures(options.requests, Path(made)))
    print(table(f"waves of {options.requests:,} requests", found))
    raise SystemExit(any(figure.verdict == "short" for figure in found))


if __name__ == "__main__":
    main()
