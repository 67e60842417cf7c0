"""Run directories made up in memory, of any size: for what reads them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from inference_benchmarker.facts.wave_facts import Window
from inference_benchmarker.plan.plan import Bounds, ClosedLoop, OpenLoop, WavePlan
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.units import NS
from inference_benchmarker.wave import store
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.wave import Wave

if TYPE_CHECKING:
    from pathlib import Path

START = 1_700_000_000
TOKENS = 4


def make_run(
    path: Path,
    requests: int = 3000,
    rate: int = 100,
    *,
    middle_ms: float = 20,
    failed: int = 0,
    dropped: int = 0,
    stream: bool = False,
    closed: bool = False,
    name: str | None = None,
) -> Wave:
    """A wave, stored, with lognormal latencies around ``middle_ms``; its last ``failed`` requests fail.

    ``dropped`` arrivals come after those that were sent: the wave is INVALID.
    """
    path.mkdir(parents=True)
    load = ClosedLoop(4) if closed else OpenLoop(Decimal(rate))
    plan = WavePlan(load, Bounds(None, requests + dropped), name=name)
    records = _records(requests, rate, middle_ms, failed, stream=stream)
    wave = Wave(
        plan=plan,
        window=Window(START * NS, 0, requests * NS // rate, int(records.int("done").max(initial=0))),
        records=records,
        warmup=Records(SCHEMA.empty_table()),
        ledgers=(
            Ledger(scheduled=requests + dropped, sent=requests, dropped=dropped, ok=requests - failed, failed=failed),
        ),
    )
    store.save_plan(RunDir(path), plan, {})
    return store.save(wave, RunDir(path))


def _records(requests: int, rate: int, middle_ms: float, failed: int, *, stream: bool) -> Records:
    draw = np.random.default_rng(requests + rate)
    index = np.arange(requests)
    due = index * NS // rate
    sent = due + draw.integers(20_000, 400_000, requests)
    latency = draw.lognormal(np.log(middle_ms * 1e6), 0.3, requests).astype(np.int64)
    outcome = np.where(index >= requests - failed, 1, 0).astype(np.int32)
    columns: dict[str, Any] = {
        "index": index,
        "due": due,
        "sent": sent,
        "done": sent + latency,
        "build_ns": np.zeros(requests, np.int64),
        "worker": np.zeros(requests, np.uint16),
        "label": _dictionary(np.zeros(requests, np.int32), [""]),
        "outcome": _dictionary(outcome, ["ok", "failed"]),
        "error": _dictionary(np.zeros(requests, np.int32), ["HttpError 500"], null=outcome == 0),
    }
    columns |= _tokens(sent, latency) if stream else {}
    return Records(
        pa.table(
            [pa.array(columns[f.name]) if f.name in columns else pa.nulls(requests, f.type) for f in SCHEMA],
            schema=SCHEMA,
        )
    )


def _tokens(sent: Any, latency: Any) -> dict[str, Any]:
    """Evenly spaced tokens, the last of them with the answer."""
    gap = latency // TOKENS
    gaps = np.repeat((gap // 1000).astype(np.uint32), TOKENS - 1)
    offsets = np.arange(0, len(gaps) + 1, TOKENS - 1, dtype=np.int32)
    return {
        "first_token": sent + gap,
        "last_token": sent + gap * TOKENS,
        "chunks": np.full(len(sent), TOKENS),
        "gaps": pa.ListArray.from_arrays(offsets, gaps),
    }


def _dictionary(numbers: Any, names: list[str], null: Any = None) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=null), names)
