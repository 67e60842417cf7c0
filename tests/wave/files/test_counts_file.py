"""``counts.parquet``: read back as it was written, and refused where nobody's wave leaves such a one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.counts import Counts, slowest
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.wave.files.counts_file import SCHEMA, read_counts, write_counts
from inference_benchmarker.words.units import NS
from tests.counted import counted, requests
from tests.parts import in_memory, in_parts
from tests.waves import observe, on_time, open_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAN = open_plan("10", "4")
WRONG = RequestRecord(1, 0, NS, NS, 2 * NS, "failed", "a", "E")


@settings(max_examples=30)
@given(requests())
def test_counts_are_read_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    path = tmp_path_factory.mktemp("counts") / "counts.parquet"
    written = counted(rows, stage_ends=(2 * NS,), draw=random.Random(1))
    write_counts(path, written, 0)
    found = read_counts(path)
    assert _members(found) == _members(written)
    assert (found.errors, found.first, found.finish_reasons) == (written.errors, written.first, written.finish_reasons)
    assert {name: (each.ok, each.failed, dict(each.times)) for name, each in found.labels.items()} == {
        name: (each.ok, each.failed, dict(each.times)) for name, each in written.labels.items()
    }


def _members(counts: Counts) -> dict[str, list[list[int]]]:
    return {
        what: [np.asarray(column).tolist() for column in (each.second, each.stage, each.key, each.count)]
        for what, each in counts.series.items()
        if len(each.second)
    }


def _with(name: str, value: int) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index(name)
        column = pc.if_else(table.column("second").is_valid(), pa.scalar(value, SCHEMA.field(name).type), None)
        return table.set_column(place, SCHEMA.field(name), pc.coalesce(column, table.column(name)))

    return change


def _without(what: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.filter(pc.not_equal(table.column("what").cast(pa.string()), what))


def _named(name: str, count: int = 1, key: int = 0) -> Callable[[pa.Table], pa.Table]:
    row = {"what": "label_latency", "name": name, "key": key, "count": count}
    return lambda table: pa.concat_tables([table, pa.Table.from_pylist([row], SCHEMA)])


FORGED: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a count below none": _with("count", -1),
    "a count that no second has": _with("count", 1 << 40),
    "a key of nothing": _with("key", -1),
    "a key beyond all": _with("key", 1 << 30),
    "a second of no wave": _with("second", 1 << 30),
    "a stage of none": _with("stage", -2),
    **{f"less than all: {what}": _without(what) for what in ("sent", "ok_at", "latency", "lag", "failed")},
    "a long name": _named("x" * 10_000),
    "a label's count below none": _named("a", count=-1),
    "a label's key of nothing": _named("a", key=-1),
    "a label's key beyond all": _named("a", key=1 << 30),
    "another column": lambda table: table.append_column("x", pa.nulls(len(table))),
    "a column less": lambda table: table.drop_columns(["key"]),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_forged_counts_are_refused_in_a_sentence(tmp_path: Path, forge: Callable[[pa.Table], pa.Table]) -> None:
    path = tmp_path / "counts.parquet"
    write_counts(path, counted([*on_time(PLAN), WRONG]), 0)
    pq.write_table(forge(pq.read_table(path)), path)
    with pytest.raises(BenchmarkError, match=r"counts\.parquet"):
        read_counts(path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 100])
def test_what_is_no_such_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "counts.parquet"
    path.write_bytes(data)
    with pytest.raises(BenchmarkError, match=r"counts\.parquet"):
        read_counts(path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"counts\.parquet"):
        read_counts(tmp_path / "counts.parquet")


@pytest.mark.parametrize("rows", [3, 7, 100])
def test_the_slowest_of_several_parts_are_the_slowest(rows: int) -> None:
    found = [row._replace(done=row.due + (7 * row.index) % 23 * 1000) for row in on_time(PLAN)]
    records = observe(PLAN, found).records
    chosen = [row.index for row in slowest(in_parts(in_memory(records), rows), 10)]
    assert chosen == sorted(sorted(range(40), key=lambda index: (-(7 * index % 23), index))[:10])
