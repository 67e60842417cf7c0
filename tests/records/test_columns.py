"""Columns: one table in arrival order with exactly the types that requests.parquet promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.records.record import RequestRecord
from tests.waves import Worker

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = [
    RequestRecord(-1, 1, -100, -90, -50, label="warm"),
    RequestRecord(0, 0, 0, 10, 50, bytes=0, tokens_in=7, tokens_out=0),
    RequestRecord(1, 1, 100, 110, 150, outcome="failed", error="ValueError", label="b"),
    RequestRecord(2, 0, 200, 210, 250, outcome="abandoned", label="b", build_ns=5),
    RequestRecord(3, 1, 300, 310, 999_000, "ok", "c", None, 0, 5_000, 999_000, 3, 4, None, 99, (4, 990)),
    RequestRecord(4, 0, 400, 410, 450, chunks=0, gaps=()),
]


def test_records_of_rows_are_records_of_workers() -> None:
    workers = [Worker(0), Worker(1)]
    for record in reversed(RECORDS):
        workers[record.worker].write(record)
        workers[record.worker].flush()
    packed, plain = Records.of_workers([worker.columns() for worker in workers]), Records.of(reversed(RECORDS))
    assert list(packed) == list(plain) == RECORDS
    assert packed.table.schema == plain.table.schema == SCHEMA


def test_the_file_has_the_promised_types(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    pq.write_table(Records.of(RECORDS).table, path)
    schema = pq.read_table(path).schema
    names = pa.dictionary(pa.int32(), pa.string())
    assert dict(zip(schema.names, schema.types, strict=True)) == {
        **{name: pa.int64() for name in ("index", "due", "sent", "first_token", "last_token", "done", "build_ns")},
        **{name: pa.int64() for name in ("chunks", "tokens_in", "tokens_out", "bytes", "session", "think_ns")},
        **{name: pa.int64() for name in ("first_answer", "context_tokens")},
        **dict.fromkeys(("label", "outcome", "error", "finish_reason", "ended"), names),
        **dict.fromkeys(("attempt", "turn", "worker"), pa.uint16()),
        "gaps": pa.list_(pa.uint32()),
    }
    assert [field.name for field in schema if not field.nullable] == [
        "index",
        "attempt",
        "worker",
        "due",
        "sent",
        "done",
        "build_ns",
    ]


@pytest.mark.parametrize("records", [RECORDS, RECORDS[:1], []], ids=["all", "one", "none"])
def test_a_file_gives_back_what_was_stored(tmp_path: Path, records: list[RequestRecord]) -> None:
    path = tmp_path / "requests.parquet"
    made = Records.of(records)
    pq.write_table(pa.concat_tables([made.where(made.int("index") < 0).table, made.table]), path)
    read = Records(pq.read_table(path).combine_chunks())
    assert list(read)[-len(records) :] == records
    codes, names = read.coded("outcome")
    assert [names[code] for code in codes[-len(records) :]] == [record.outcome for record in records]


def test_none_is_not_zero() -> None:
    records = Records.of(RECORDS)
    assert records.has("bytes").tolist() == [False, True, False, False, True, False]
    assert records.has("tokens_out").tolist() == [False, True, False, False, False, False]
    assert records.has("chunks").tolist() == [False, False, False, False, True, True]
    assert records.int("tokens_in").tolist() == [0, 7, 0, 0, 4, 0]


def test_outcomes_and_names_are_numbered() -> None:
    records = Records.of(RECORDS)
    assert np.flatnonzero(records.outcome("failed")).tolist() == [2]
    assert np.flatnonzero(records.outcome("abandoned")).tolist() == [3]
    codes, names = records.coded("error")
    assert [None if code < 0 else names[code] for code in codes] == [None, None, "ValueError", None, None, None]
    assert not Records.of(RECORDS[:1]).outcome("failed").any()


def test_gaps_are_of_the_selected_requests_in_seconds() -> None:
    records = Records.of(RECORDS)
    assert records.gaps(records.outcome("ok")).tolist() == [4e-6, 990e-6]
    assert records.gaps(records.outcome("failed")).tolist() == []


def test_an_empty_wave_has_empty_columns() -> None:
    for records in (Records.of([]), Records.of_workers([]), Records.of_workers([Worker().columns()])):
        assert len(records) == 0
        assert list(records) == []
        assert records.int("done").tolist() == []
        assert not records.outcome("ok").any()
        assert records.gaps(records.outcome("ok")).tolist() == []
        assert records.coded("label")[0].tolist() == []


def test_workers_name_things_by_numbers_of_their_own() -> None:
    workers = [Worker(0), Worker(1)]
    workers[0].write(RequestRecord(0, 0, 0, 0, 1, label="a"))
    workers[0].write(RequestRecord(2, 0, 0, 0, 1, label="b"))
    workers[1].write(RequestRecord(1, 1, 0, 0, 1, label="b"))
    workers[1].write(RequestRecord(3, 1, 0, 0, 1, label="a"))
    for worker in workers:
        worker.flush()
    records = Records.of_workers([worker.columns() for worker in workers])
    codes, names = records.coded("label")
    assert [names[code] for code in codes] == ["a", "b", "b", "a"]
    assert sorted(set(names)) == ["", "a", "b"]
    assert len(names) == len(set(names))
