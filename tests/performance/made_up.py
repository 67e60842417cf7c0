"""Spools of waves of any size, made up: what a wave leaves behind that was killed in its last moment.

10,000 requests a second of two workers, reported every half second; latencies about 20 ms, two labels, one request in a
thousand failed, and the last of each worker abandoned.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np

from inference_benchmarker.data.json_file import write_json
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.batch import joined_batch
from inference_benchmarker.records.packed import BASE_DTYPE
from inference_benchmarker.records.record import NONE, OUTCOMES, Ledger
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import SpoolWriter
from inference_benchmarker.words.units import NS

RATE, WORKERS, INTERVAL_NS = 10_000, 2, NS // 2
ABANDONED = 20
_OK, _FAILED, _ABANDONED = map(OUTCOMES.index, ("ok", "failed", "abandoned"))
_NAMES = {"labels": ["short", "long"], "finish_reasons": [""], "errors": ["", "HttpError 503"], "texts": []}


def make_spool(parent: Path, requests: int, seed: int = 1) -> RunDir:
    """A run directory whose wave is all in its spool; others with another seed."""
    plan = WavePlan(
        OpenLoop(Decimal(RATE)), Bounds(None, requests), workers=WORKERS, seed=seed, factories_file=Path("/f.py")
    )
    run_dir = RunDir.create(parent)
    write_json(run_dir.plan, plan.public_json())
    spool = SpoolWriter(run_dir.spool)
    spool.event(event="start", t0=5, wall_ns=1_700_000_000 * NS, caps=[500] * WORKERS)
    workers = [_Worker(number, requests, seed) for number in range(WORKERS)]
    each = RATE * INTERVAL_NS // NS
    for begin in range(0, requests, each):
        for worker in workers:
            spool.batch(worker.report(begin, min(begin + each, requests)))
    spool.event(event="end", at=requests * NS // RATE + NS)
    spool.close()
    return run_dir


class _Worker:
    def __init__(self, number: int, requests: int, seed: int) -> None:
        self._number, self._requests = number, requests
        self._random = np.random.default_rng([seed, number])
        self._counts: Counter[str] = Counter()

    def report(self, begin: int, stop: int) -> bytes:
        """Its batch of the arrivals in half a second."""
        rows = self._rows(np.arange(begin + self._number, stop, WORKERS), final=stop == self._requests)
        self._counts += {name: int((rows["outcome"] == code).sum()) for code, name in enumerate(OUTCOMES)}
        ledger = Ledger(sent=self._counts.total(), **self._counts).to_json()
        names = _NAMES if not begin else {name: [] for name in _NAMES}
        at = stop * NS // RATE + (NS if stop == self._requests else 0)
        meta = {"worker": self._number, "sequence": 0, "at": at, "final": stop == self._requests, "ledger": ledger}
        return joined_batch({**meta, **names}, rows.tobytes(), b"", b"")

    def _rows(self, index: np.ndarray, *, final: bool) -> np.ndarray:
        rows, draw = np.zeros(len(index), BASE_DTYPE), self._random
        rows["index"], rows["bytes"], rows["label"] = index, NONE, index // WORKERS % 2
        rows["due"] = index * NS // RATE
        rows["sent"] = rows["due"] + draw.exponential(50_000, len(index)).astype(np.int64)
        rows["done"] = rows["sent"] + (draw.lognormal(0, 0.3, len(index)) * 20_000_000).astype(np.int64)
        failed = draw.integers(0, 1000, len(index)) == 0
        rows["outcome"], rows["error"] = np.where(failed, _FAILED, _OK), failed
        if final:
            rows["outcome"][-ABANDONED:], rows["error"][-ABANDONED:] = _ABANDONED, 0
            rows["done"][-ABANDONED:] = self._requests * NS // RATE + NS
        return rows
