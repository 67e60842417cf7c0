"""The workers' packed reports as one table: what contradicts itself is refused, and little is copied."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.records import arrow
from inference_benchmarker.records.batch import HAS_STREAM
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.packed import BASE_DTYPE, STREAM_DTYPE, WorkerColumns
from inference_benchmarker.records.record import NONE, RequestRecord
from tests.waves import Worker, stream

if TYPE_CHECKING:
    from typing import Any

ROWS = 100_000


def plain(worker: int, workers: int) -> WorkerColumns:
    """A worker's stripe of plain requests."""
    base = np.zeros(ROWS // workers, BASE_DTYPE)
    base["index"], base["bytes"] = np.arange(worker, ROWS, workers), NONE
    return WorkerColumns(worker, base, np.zeros(0, STREAM_DTYPE), np.zeros(0, np.uint32), [""], [""], [""])


def test_beside_the_table_there_is_one_column_in_two_versions() -> None:
    """A table without streams has 52 bytes a request in memory, its columns without a value none; each 8 beside it."""
    workers = [plain(number, 2) for number in range(2)]
    tracemalloc.start()
    records = Records.of_workers(workers)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert records.int("index").tolist() == list(range(ROWS))
    assert most / ROWS < 66 + 5 * 8  # zeros that are never written are counted here: 38 bytes of them


@given(st.lists(st.integers(0, 5), max_size=5) | st.permutations(range(6)) | st.lists(st.integers(0, 1 << 62)))
def test_rows_are_in_the_order_of_arrivals_and_then_of_reports(index: list[int]) -> None:
    base = np.zeros(len(index), BASE_DTYPE)
    base["index"], base["sent"] = index, range(len(index))
    records = Records.of_workers([replace(plain(7, 8), base=base)])
    rows = sorted(zip(index, range(len(index)), strict=True))
    assert list(zip(records.int("index"), records.int("sent"), strict=True)) == rows
    assert set(records.int("worker")) <= {7}


@pytest.mark.parametrize("name", ["label", "error"])
def test_a_number_that_no_name_has_is_refused(name: str) -> None:
    worker = plain(0, 2)
    worker.base[name][5] = 1
    with pytest.raises(ValueError, match="number 1 of a name is out of bounds"):
        Records.of_workers([plain(1, 2), worker])


def test_columns_without_a_value_are_as_any_other() -> None:
    for made, plain_one in (
        (arrow.nothing(9, np.dtype(np.int64)), pa.nulls(9, pa.int64())),
        (arrow.no_lists(9, pa.uint32()), pa.nulls(9, pa.list_(pa.uint32()))),
        (arrow.nullable(np.array([5, 5]), 5), pa.nulls(2, pa.int64())),
    ):
        made.validate(full=True)
        assert made.equals(plain_one)
        assert made.null_count == len(made)
    assert arrow.numbers(arrow.nothing(3, np.dtype(np.int64)), null=-1).tolist() == [-1] * 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"streams": np.zeros(0, STREAM_DTYPE)}, "0 streams, 1 of them reported"),
        ({"streams": np.zeros(2, STREAM_DTYPE)}, "2 streams, 1 of them reported"),
        ({"gaps": np.zeros(5, np.uint32)}, "5 gaps between tokens, 2 of them reported"),
    ],
)
def test_streams_and_gaps_are_as_many_as_the_requests_tell(wrong: dict[str, Any], said: str) -> None:
    worker = Worker()
    worker.write(RequestRecord(0, 0, 0, 0, 1))
    worker.write(stream([1_000, 4_000, 9_000])._replace(index=1))
    worker.flush()
    columns = worker.columns()
    assert np.count_nonzero(columns.base["outcome"] & HAS_STREAM) == 1
    with pytest.raises(ValueError, match=said):
        Records.of_workers([replace(columns, **wrong)])
