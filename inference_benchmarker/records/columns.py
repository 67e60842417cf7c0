"""A wave's records as columns: one Arrow table, indexed by arrival, that numpy can compute on.

This is the form of ``requests.parquet``; docs/reference/files.md lists its columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from inference_benchmarker.records import arrow
from inference_benchmarker.records.record import (
    FINISH_MASK,
    FINISH_SHIFT,
    HAS_STREAM,
    NONE,
    OUTCOME,
    OUTCOMES,
    RequestRecord,
)
from inference_benchmarker.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = int  # in a class that has a method of that name

BASE_DTYPE = np.dtype(
    [
        ("index", "<i8"),
        ("due", "<i8"),
        ("sent", "<i8"),
        ("done", "<i8"),
        ("build_ns", "<i8"),
        ("bytes", "<i8"),
        ("label", "<u2"),
        ("error", "<u2"),
        ("outcome", "u1"),
    ]
)
STREAM_DTYPE = np.dtype(
    [
        ("first_token", "<i8"),
        ("last_token", "<i8"),
        ("chunks", "<i8"),
        ("tokens_in", "<i8"),
        ("tokens_out", "<i8"),
        ("gaps", "<u4"),
    ]
)
MOST_ATTEMPT = (1 << 16) - 1
LONGEST_NS = 3 * MAX_SECONDS * NS  # warm-up, wave and drain
MOST_COUNT = 1 << 53
_INSTANTS = ("due", "sent", "first_token", "last_token", "done")
_BOUNDS = {
    **dict.fromkeys(_INSTANTS, (-LONGEST_NS, LONGEST_NS)),
    "index": (-MOST_COUNT, MOST_COUNT),
    "build_ns": (0, LONGEST_NS),
    **dict.fromkeys(("chunks", "tokens_in", "tokens_out", "bytes"), (0, MOST_COUNT)),
}
_NAMES = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),
        pa.field("attempt", pa.uint16(), nullable=False),
        pa.field("worker", pa.uint16(), nullable=False),
        pa.field("label", _NAMES),
        pa.field("due", pa.int64(), nullable=False),
        pa.field("sent", pa.int64(), nullable=False),
        pa.field("first_token", pa.int64()),
        pa.field("last_token", pa.int64()),
        pa.field("done", pa.int64(), nullable=False),
        pa.field("build_ns", pa.int64(), nullable=False),
        pa.field("outcome", _NAMES),
        pa.field("error", _NAMES),
        pa.field("chunks", pa.int64()),
        pa.field("tokens_in", pa.int64()),
        pa.field("tokens_out", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("gaps", pa.list_(pa.uint32())),
        pa.field("finish_reason", _NAMES),
    ]
)


@dataclass(frozen=True, slots=True)
class WorkerColumns:
    """One worker's reports, joined over its batches: packed arrays and the names their numbers mean.

    ``attempts`` has a pair for each request that was not its arrival's first: its row, and the how many-th it was.
    """

    worker: int
    base: npt.NDArray[Any]
    streams: npt.NDArray[Any]
    gaps: npt.NDArray[np.uint32]
    labels: list[str]
    errors: list[str]
    finish_reasons: list[str]
    attempts: Int64 = field(default_factory=lambda: np.zeros((0, 2), np.int64))


class Records:
    """The records of a wave, sorted by arrival index, then by attempt where clients tried again.

    Iterating gives ``RequestRecord``s.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._columns: dict[str, Any] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[RequestRecord]:
        for batch in self.table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                row["label"] = row["label"] or ""
                row["gaps"] = None if row["gaps"] is None else tuple(row["gaps"])
                yield RequestRecord(**row)

    @classmethod
    def of(cls, records: Iterable[RequestRecord]) -> Records:
        """The table of some records."""
        rows = [record._asdict() for record in sorted(records, key=lambda record: (record.index, record.attempt))]
        return cls(pa.Table.from_pylist(rows, schema=SCHEMA))

    @classmethod
    def of_workers(cls, workers: Iterable[WorkerColumns]) -> Records:
        """The table of what the workers reported."""
        tables = [_worker_table(worker) for worker in workers]
        table = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
        table = table.unify_dictionaries().combine_chunks()
        repeated = pc.max(table.column("attempt")).as_py()
        order = [("index", "ascending"), *([("attempt", "ascending")] if repeated else [])]
        return cls(table.sort_by(order))

    def int(self, name: str) -> Int64:
        """An integer column as numpy; 0 where it is null (see ``has``)."""
        if name not in self._columns:
            self._columns[name] = arrow.numbers(self.table.column(name))
        values: Int64 = self._columns[name]
        return values

    def has(self, name: str) -> Mask:
        """The rows in which a column is not null."""
        return arrow.present(self.table.column(name))

    @cached_property
    def repeats(self) -> Mask:
        """The rows that are not the first of their arrival: what clients sent when they tried again."""
        return self.int("attempt") > 0

    @cached_property
    def lasts(self) -> Mask:
        """The rows that are the last of their arrival, whose outcome is the user's."""
        index = self.int("index")
        return np.append(index[1:] != index[:-1], True)[: len(index)]

    @cached_property
    def arrived(self) -> Int64:
        """When the arrival of each row was due, in ns: the due time of its first row."""
        if not self.repeats.any():
            return self.int("due")
        index = self.int("index")
        begins = np.append(True, index[1:] != index[:-1])
        dues: Int64 = self.int("due")[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
        return dues

    def outcome(self, name: str) -> Mask:
        """The rows with the outcome ``ok``, ``failed`` or ``abandoned``."""
        codes, names = self.coded("outcome")
        mask: Mask = codes == (names.index(name) if name in names else -1)
        return mask

    def coded(self, name: str) -> tuple[Int64, list[str]]:
        """A dictionary column as numbers (-1 where null) and the names they mean."""
        column = self.table.column(name)
        if not column.num_chunks:  # no rows
            return np.zeros(0, np.int64), []
        whole = column.combine_chunks()
        return arrow.numbers(whole.indices, null=-1).astype(np.int64), whole.dictionary.to_pylist()

    def check(self) -> None:
        """Raise ValueError for values that no worker reports: an instant of no wave, a count below zero."""
        for name, (least, most) in _BOUNDS.items():
            found = pc.min_max(self.table.column(name)).as_py()
            if found["min"] is not None and not least <= found["min"] <= found["max"] <= most:
                raise ValueError(f"{name} is from {found['min']} to {found['max']}")
        for name in ("label", "outcome", "error", "finish_reason"):
            codes, names = self.coded(name)
            if None in names or (name == "outcome" and not (codes >= 0).all()):
                raise ValueError(f"{name} is missing")
        if strange := set(self.coded("outcome")[1]) - set(OUTCOMES):
            raise ValueError(f"an outcome is {str(strange.pop())[:40]!r}")
        self._check_attempts()

    def _check_attempts(self) -> None:
        """Each further attempt stands after the one before it, of the same arrival and worker, and was due later."""
        repeats = np.flatnonzero(self.repeats)
        for name, step in (("index", 0), ("worker", 0), ("attempt", 1)):
            values = self.int(name).astype(np.int64)
            if len(repeats) and (not repeats[0] or (values[repeats] - values[repeats - 1] != step).any()):
                raise ValueError("an attempt does not follow the one before it")
        if (self.int("due")[repeats] < self.int("done")[repeats - 1]).any():
            raise ValueError("an attempt was due before the one before it was over")
        first = np.sort(self.int("index")[~self.repeats])
        if (first[1:] == first[:-1]).any():
            raise ValueError("an arrival has two first attempts")

    def gaps(self, where: Mask) -> Floats:
        """Every gap between tokens of the selected requests, in seconds."""
        chosen = self.table.column("gaps").filter(arrow.truths(where))
        flat = pa.chunked_array([lists.flatten() for lists in chosen.chunks], pa.uint32())
        seconds: Floats = arrow.numbers(flat) / 1e6
        return seconds

    def between(self, first: Index, stop: Index) -> Records:
        """The records at these places."""
        return Records(self.table.slice(first, stop - first))

    def in_order_of_arrival(self) -> Records:
        """The same records by when their arrivals were due; the attempts of one stay together, in their order."""
        order = np.argsort(self.arrived, kind="stable")
        return Records(self.table.take(arrow.column(order.astype(np.int64))).combine_chunks())

    def and_then(self, later: Records) -> Records:
        """These records and later ones."""
        return Records(pa.concat_tables([self.table, later.table]).unify_dictionaries())

    def since(self, start_ns: Index) -> Records:
        """The same records on a clock that begins that much later."""
        table = self.table
        for name in _INSTANTS:
            shifted = pc.subtract(table.column(name), start_ns)
            table = table.set_column(table.column_names.index(name), SCHEMA.field(name), shifted)
        return Records(table)

    def where(self, mask: Mask) -> Records:
        """The selected records."""
        return Records(self.table.filter(arrow.truths(mask)))


def _worker_table(worker: WorkerColumns) -> pa.Table:
    base = worker.base
    size = len(base)
    columns = {name: arrow.column(base[name]) for name in ("index", "due", "sent", "done", "build_ns")}
    columns["worker"] = arrow.column(np.full(size, worker.worker, np.uint16))
    columns["attempt"] = arrow.column(_attempts(worker))
    columns["bytes"] = _nullable(base["bytes"])
    columns["label"] = _dictionary(base["label"], worker.labels)
    columns["outcome"] = _dictionary(base["outcome"] & OUTCOME, list(OUTCOMES))
    columns["error"] = _dictionary(base["error"], worker.errors, null=base["error"] == 0)
    finish = base["outcome"] >> FINISH_SHIFT & FINISH_MASK
    columns["finish_reason"] = _dictionary(finish, worker.finish_reasons, null=finish == 0)
    columns |= _stream_columns(worker)
    return pa.table([columns[field.name] for field in SCHEMA], schema=SCHEMA)


def _attempts(worker: WorkerColumns) -> npt.NDArray[np.uint16]:
    numbers = np.zeros(len(worker.base), np.uint16)
    numbers[worker.attempts[:, 0]] = worker.attempts[:, 1]
    return numbers


def _stream_columns(worker: WorkerColumns) -> dict[str, pa.Array]:
    """The columns only some requests have, spread to their rows; entries and gaps lie in the order of rows."""
    size = len(worker.base)
    rows = np.flatnonzero(worker.base["outcome"] & HAS_STREAM)
    columns = {}
    for name in ("first_token", "last_token", "chunks", "tokens_in", "tokens_out"):
        spread = np.full(size, NONE, np.int64)
        spread[rows] = worker.streams[name]
        columns[name] = _nullable(spread)
    lengths = np.zeros(size, np.int64)
    lengths[rows] = worker.streams["gaps"]
    if lengths.sum() != len(worker.gaps):
        raise ValueError(f"{len(worker.gaps):,} gaps between tokens, {lengths.sum():,} of them told")
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    no_stream = np.append(~arrow.present(columns["chunks"]), False)
    columns["gaps"] = pa.ListArray.from_arrays(arrow.column(offsets, no_stream), arrow.column(worker.gaps))
    return columns


def _nullable(values: npt.NDArray[Any]) -> pa.Array:
    return arrow.column(values, values == NONE)


def _dictionary(numbers: npt.NDArray[Any], names: list[str], null: Mask | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(arrow.column(numbers.astype(np.int32), null), arrow.texts(names))
