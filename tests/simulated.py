"""Runs without waves: records drawn from a generator, made a ``Wave`` and a run directory by the product's own code."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from inference_benchmarker import Wave
from inference_benchmarker.facts.wave_facts import Window
from inference_benchmarker.plan.plan import Bounds, ClosedLoop, OpenLoop, WavePlan
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.units import NS
from inference_benchmarker.wave import store
from inference_benchmarker.wave.run_dir import RunDir

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MEAN_S = 0.1


def drawn(
    seed: int, *, rate: int = 100, seconds: int = 20, cv: float = 0.3, shape: str = "lognormal"
) -> npt.NDArray[np.float64]:
    """Latencies in seconds, a row for each second of load."""
    random = np.random.default_rng(seed)
    size = (seconds, rate)
    if shape == "gamma":
        return MEAN_S * random.gamma(1 / cv**2, cv**2, size)
    sigma = np.sqrt(np.log1p(cv**2))
    return MEAN_S * random.lognormal(-(sigma**2) / 2, sigma, size)


def wave(
    latencies_s: npt.ArrayLike, *, outcomes: Sequence[str] | None = None, concurrency: int | None = None, **more: Any
) -> Wave:
    """The wave whose rows of latencies are its seconds; ``outcomes``: of each request, else all are ok.

    ``more``: columns of the records, or fields of the plan.
    """
    seconds = np.asarray(latencies_s, np.float64)
    size = seconds.size
    columns = {name: more.pop(name) for name in tuple(more) if name in SCHEMA.names}
    load = OpenLoop(Decimal(seconds.shape[1])) if concurrency is None else ClosedLoop(concurrency)
    plan = replace(WavePlan(load, Bounds(Decimal(len(seconds)))), **more)
    due = np.arange(size) * NS // seconds.shape[1]
    done = due + np.round(seconds.ravel() * NS).astype(np.int64)
    told = np.asarray(["ok"] * size if outcomes is None else outcomes)
    values = {
        "index": np.arange(size),
        "worker": np.zeros(size, np.uint16),
        "due": due,
        "sent": due,
        "done": done,
        "build_ns": np.zeros(size, np.int64),
        "label": pa.array([""] * size).dictionary_encode(),
        "outcome": pa.array(told).dictionary_encode(),
        **columns,
    }
    arrays = [
        pa.array(values[field.name], field.type) if field.name in values else pa.nulls(size, field.type)
        for field in SCHEMA
    ]
    counts = {name: int((told == name).sum()) for name in ("ok", "failed", "abandoned")}
    answered = done[told != "abandoned"]
    return Wave(
        plan=plan,
        window=Window(1_700_000_000 * NS, 5, len(seconds) * NS, int(answered.max(initial=0))),
        records=Records(pa.table(arrays, schema=SCHEMA)),
        warmup=Records(SCHEMA.empty_table()),
        ledgers=(Ledger(scheduled=size, sent=size, **counts),),
    )


def stored(wave: Wave, parent: Path) -> RunDir:
    """The run directory of a simulated wave."""
    run_dir = RunDir.create(parent)
    store.save_plan(run_dir, wave.plan, {})
    store.save(wave, run_dir)
    return run_dir
