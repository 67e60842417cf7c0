"""Requests that are counted: what a worker tells of them is what their records say."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.records.aggregation import BatchAggregator
from inference_benchmarker.records.batch import split_batch
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.counting import BIN_NS, MOST_SLOWEST, WARMUP, CountingBatchWriter
from inference_benchmarker.records.counts import PRECISION, Counts, bucket_values, in_flight
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.packed import BASE_DTYPE
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.words.units import NS
from tests.counted import counted, requests
from tests.waves import MS, Worker


@settings(max_examples=40)
@given(requests(), st.integers(0, 2**32))
def test_counts_are_those_of_the_records(found: list[RequestRecord], seed: int) -> None:
    counts = counted(found, stage_ends=(2 * NS,), draw=random.Random(seed))
    records = Records.of(found)
    for stage, part in enumerate((counts.of_stage(0), counts.of_stage(1))):
        due, index = records.int("due"), records.int("index")
        mine = records.where((index >= 0) & ((due >= 2 * NS) == bool(stage)))
        _same(part, mine)
    _same(counts.warmup, records.where(records.int("index") < 0))
    window = records.where(records.int("index") >= 0)
    names = [(row.label, row.outcome) for row in window]
    for label in {row.label for row in window} - {""}:
        reported = counts.labels[label]
        assert [reported.ok, reported.failed, reported.abandoned] == [
            names.count((label, outcome)) for outcome in ("ok", "failed", "abandoned")
        ]
    errors = [row for row in window if row.error is not None]
    assert counts.first == {key: min(r.done for r in errors if r.error == key) for key in {r.error for r in errors}}


def _same(counts: Counts, records: Records) -> None:
    """Counts and sums to the last one, times by bucket."""
    ok, failed, abandoned = (records.outcome(name) for name in ("ok", "failed", "abandoned"))
    sent, done, due = (records.int(name) for name in ("sent", "done", "due"))
    assert [counts.total(name) for name in ("sent", "ok", "failed", "abandoned")] == [
        len(records),
        *(np.count_nonzero(each) for each in (ok, failed, abandoned)),
    ]
    bins = np.arange(0, 1000, 7)
    assert counts["ok_at"].before(bins).tolist() == [np.count_nonzero(done[ok] // BIN_NS < each) for each in bins]
    for name, values in {
        "latency": (done - sent)[~failed],
        "response_time": (done - due)[~failed],
        "failed_latency": (done - sent)[failed],
        "lag": sent - records.int("build_ns") - due,
        "build": records.int("build_ns")[records.int("build_ns") > 0],
        "ttft": (records.int("first_token") - sent)[~failed & records.has("first_token")],
        "itl": np.round(records.gaps(~failed & records.has("first_token")) * NS).astype(np.int64),
    }.items():
        assert counts.total(f"{name}_sum") == values.sum(), name
        assert _histogram(counts, name) == Histogram.of(values.tolist()), name


def _histogram(counts: Counts, name: str) -> Histogram:
    return Histogram({key: count for key, count in enumerate(counts[name].by_key.tolist()) if count})


@given(st.lists(st.integers(0, 1 << 62), min_size=1))
def test_the_middle_of_a_bucket_is_near_its_values(values: list[int]) -> None:
    for value in values:
        ((bucket, _),) = Histogram.of([value]).counts.items()
        assert bucket_values(np.array([bucket]))[0] == pytest.approx(value, rel=1.00001 * PRECISION)


def test_the_slowest_are_the_slowest() -> None:
    """Of 5,000 in batches: those of the highest latency, with their streams, and no batch has more than so many."""
    draw = random.Random(3)
    worker = Worker()
    worker.writer = CountingBatchWriter()
    taken, tooks = [], []
    for index in range(5000):
        took = int(draw.lognormvariate(16, 1))
        tooks.append((took, index))
        gaps = (index, 7)
        done = index * MS + took
        stream: dict[str, Any] = {"first_token": done - 1000 * sum(gaps), "last_token": done, "chunks": 3, "gaps": gaps}
        worker.write(RequestRecord(index, 0, index * MS, index * MS, done, **stream))
        if draw.random() < 0.002:
            worker.flush()
    worker.flush()
    for batch in worker.batches:
        _, base, *_ = split_batch(batch)
        assert len(base) <= MOST_SLOWEST * BASE_DTYPE.itemsize
    rows = Records.of_workers([worker.columns()])
    taken = sorted(((row.done - row.sent, row.index) for row in rows), reverse=True)
    assert taken[:MOST_SLOWEST] == sorted(tooks, reverse=True)[:MOST_SLOWEST]
    assert all(row.gaps == (row.index, 7) for row in rows)


def test_requests_in_flight_are_known_to_20_ms() -> None:
    rows = [RequestRecord(number, 0, number * MS, number * MS, number * MS + 50 * MS) for number in range(1000)]
    bins = np.arange(100)
    exact = [sum(row.sent < at for row in rows) - sum(row.done < at for row in rows) for at in (bins * BIN_NS).tolist()]
    assert in_flight(counted(rows), bins).tolist() == exact


NOTHING: dict[str, Any] = {"labels": {}, "label_times": {}, "finish": [], "first": [], "last_due": 0, "last_done": 0}
FORGED: list[dict[str, Any]] = [
    {"feed": [{"s": 0, "n": 0, "latency_sum": 1.5}]},
    {"feed": [{"s": 0, "n": 0, "ok_at": [1 << 20, 1, 2]}]},
    {"feed": [{"s": 0, "n": 0, "failed": [5, 1]}]},
    {"feed": [{"s": 0, "n": 1 << 20, "ok": 1}]},
    {"feed": [{"s": 0, "n": 0, "latency": [3, 1 << 40]}]},
    {"warmup": [{"s": "0"}]},
    {"warmup": {}},
    {"totals": {**NOTHING, "labels": {"ok": [3, 1]}}},
    {"totals": {**NOTHING, "label_times": {"latency": [1 << 20, 1]}}},
    {"totals": {**NOTHING, "labels": [3, 1]}},
    {"totals": {**NOTHING, "finish": [7, 1]}},
    {"totals": {**NOTHING, "first": [0, None]}},
]


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_what_are_no_counts_is_refused(forged: dict[str, Any]) -> None:
    adder = BatchAggregator()
    with pytest.raises(ValueError, match=r"count|histogram|labels|first"):
        adder.add({"totals": NOTHING, **forged}, labels=[""], errors=["", "E"], reasons=[""])


def test_warmup_is_a_stage_of_its_own() -> None:
    rows = [RequestRecord(number, 0, number * NS, number * NS, number * NS) for number in range(-5, 5)]
    counts = counted(rows)
    assert set(counts["ok"].stage.tolist()) == {WARMUP, 0}
    assert counts.window.total("ok") == counts.warmup.total("ok") == 5


def test_the_rows_that_are_kept_have_their_metrics() -> None:
    worker = Worker()
    worker.writer = CountingBatchWriter()
    for number in range(MOST_SLOWEST + 9):
        took = MS if number % 7 else 2 * MS
        worker.write(RequestRecord(number, 0, number, number, number + took, metrics={"number": float(number)}))
    worker.flush()
    kept = list(Records.of_workers([worker.columns()]))
    assert len(kept) == MOST_SLOWEST
    assert all(record.metrics == {"number": record.index} for record in kept)
