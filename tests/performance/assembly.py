"""Memory and time to put a wave together from its spool and store it, by the number of its requests.

The spools are made up: 10,000 requests a second of two workers, reported every half second. Each is put together in a
process of its own, as ``benchmark report`` does it, whose most memory the system tells.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np

from inference_benchmarker.json_file import write_json
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.packed import BASE_DTYPE
from inference_benchmarker.records.record import NONE, Ledger, _joined
from inference_benchmarker.units import NS
from inference_benchmarker.wave import store
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool import SpoolWriter
from tests.performance.figures import Figure, Program
from tests.performance.measure import BENCHMARK, MEASURED, REPOSITORY

RATE, WORKERS, INTERVAL_NS = 10_000, 2, NS // 2
EMPTY = 1_000
TURNS = 3
# By a small process: a command that is started by a large one inherits the most memory that one had.
_MEASURE = """
import json, resource, subprocess, sys, time
begun = time.monotonic()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
took, used = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, took, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss]))
"""


def make_spool(parent: Path, requests: int) -> RunDir:
    """A run directory whose wave was killed in its last moment: all is in the spool; latencies about 20 ms."""
    plan = WavePlan(
        OpenLoop(Decimal(RATE)), Bounds(None, requests), workers=WORKERS, seed=1, factories_file=Path("/f.py")
    )
    run_dir = RunDir.create(parent)
    write_json(run_dir.plan, plan.public_json())
    spool = SpoolWriter(run_dir.spool)
    spool.event(event="start", t0=5, wall_ns=1_700_000_000 * NS, caps=[500] * WORKERS)
    random, each = np.random.default_rng(1), RATE * INTERVAL_NS // NS
    for begin in range(0, requests, each):
        for worker in range(WORKERS):
            index = np.arange(begin + worker, min(begin + each, requests), WORKERS)
            end = begin + each >= requests
            spool.batch(_batch(worker, index, requests, random, final=end, at=(begin // each + 1) * INTERVAL_NS))
    spool.event(event="end", at=requests * NS // RATE + NS)
    spool.close()
    return run_dir


def _batch(
    worker: int, index: np.ndarray, requests: int, random: np.random.Generator, *, final: bool, at: int
) -> bytes:
    rows = np.zeros(len(index), BASE_DTYPE)
    rows["index"], rows["bytes"] = index, NONE
    rows["due"] = index * NS // RATE
    rows["sent"] = rows["due"] + random.exponential(50_000, len(index)).astype(np.int64)
    rows["done"] = rows["sent"] + random.lognormal(0, 0.3, len(index)) * 20_000_000
    count = int(index[-1]) // WORKERS + 1 if len(index) else len(range(worker, requests, WORKERS))
    ledger = Ledger(sent=count, ok=count).to_json()
    names = {"labels": [""] if index[0] < WORKERS else [], "finish_reasons": [""], "errors": [""], "texts": []}
    meta = {"worker": worker, "sequence": 0, "at": at, "final": final, "ledger": ledger, **names}
    return _joined(meta, rows.tobytes(), b"", b"")


def measured(requests: int) -> tuple[float, float, float]:
    """Wall and CPU seconds, and most memory in bytes, of a command that puts a wave of so many requests together."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = make_spool(Path(folder), requests)
        command = [sys.executable, "-c", _MEASURE, *BENCHMARK, "report", str(run_dir.path)]
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        code, took, cpu, most = json.loads(done.stdout)
        found = len(store.load(run_dir.path).records)
    if code not in MEASURED or found != requests:
        raise RuntimeError(f"{found:,} requests of {requests:,} were put together, exit code {code}")
    return took, cpu, most


def figures(seconds: float) -> list[Figure]:
    """A wave of so many seconds at 10,000/s beside one of a thousand requests; medians of some turns."""
    requests = int(seconds * RATE)
    whole, empty = (np.median([measured(count) for _ in range(TURNS)], axis=0) for count in (requests, EMPTY))
    above = whole[2] - empty[2]
    return [
        Figure(f"memory for {requests:,} requests, above {EMPTY:,}", above / 1e6, "MB"),
        Figure("the same", above / (requests - EMPTY), "bytes/request"),
        Figure(f"wall, {requests:,} requests", whole[0], "s"),
        Figure(f"CPU, {requests:,} requests", whole[1], "s"),
        Figure(f"wall, {EMPTY:,} requests", empty[0], "s"),
    ]


PROGRAM = Program("putting a wave together", figures, seconds=120, quick_seconds=10)

if __name__ == "__main__":
    PROGRAM.main()
