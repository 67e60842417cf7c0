"""A wave's records as columns: one Arrow table, indexed by arrival, that numpy can compute on.

This is the form of ``requests.parquet``; docs/reference/files.md lists its columns.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from inference_benchmarker.records import arrow
from inference_benchmarker.records.packed import WorkerColumns, joined
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.records.user_metrics import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = int  # in a class that has a method of that name

MOST_ATTEMPT = (1 << 16) - 1
_INSTANTS = ("due", "sent", "first_token", "first_answer", "last_token", "done")
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
        pa.field("session", pa.int64()),
        pa.field("turn", pa.uint16()),
        pa.field("think_ns", pa.int64()),
        pa.field("ended", _NAMES),
        pa.field("first_answer", pa.int64()),
        pa.field("context_tokens", pa.int64()),
    ]
)
"""The columns: a new one is packed by ``batch_writer``, unpacked by ``packed`` and bounded by ``check``, too."""
ROW_KEY = ("index", "turn", "attempt")
"""The columns that tell which request of the wave a row is of: of which arrival, turn of it, and attempt at that."""


def schema_of(metrics: Iterable[str]) -> pa.Schema:
    """The columns of a wave whose requests reported these metrics."""
    return pa.schema([*SCHEMA, *(pa.field(PREFIX + name, pa.float64()) for name in metrics)])


def metrics_in(columns: Iterable[str]) -> tuple[str, ...]:
    """The names of the metrics among some columns."""
    return tuple(name.removeprefix(PREFIX) for name in columns if name.startswith(PREFIX))


class Records:
    """The records of a wave, sorted by arrival, then by turn where that is a session, then by attempt.

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
                del row["context_tokens"]  # a record has it as a property
                row["gaps"] = None if row["gaps"] is None else tuple(row["gaps"])
                fields = {name: value for name in self.metrics if (value := row.pop(PREFIX + name)) is not None}
                yield RequestRecord(**row, metrics=fields or None)

    @classmethod
    def of(cls, records: Iterable[RequestRecord]) -> Records:
        """The table of some records."""
        rows = []
        for record in sorted(records, key=lambda record: record.place):
            fields = record.metrics or {}
            context = {"context_tokens": record.context_tokens}
            rows.append({**record._asdict(), **context, **{PREFIX + name: value for name, value in fields.items()}})
        names = sorted({name for row in rows for name in row["metrics"] or ()})
        return cls(pa.Table.from_pylist(rows, schema=schema_of(names)))

    @classmethod
    def of_workers(cls, workers: Iterable[WorkerColumns]) -> Records:
        """The table of what the workers reported."""
        columns = joined(list(workers))
        schema = schema_of(metrics_in(columns))
        return cls(pa.table([columns[field.name] for field in schema], schema=schema))

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Records:
        """The records of parts that have the same columns, one after the other; a metric may be in some of them."""
        if not parts:
            return cls(SCHEMA.empty_table())
        return cls(
            pa.concat_tables([part.table for part in parts], promote_options="default")
            .unify_dictionaries()
            .combine_chunks()
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that are here; each has a column."""
        return metrics_in(self.table.column_names)

    def metric(self, name: str) -> Floats:
        """The values of a metric; NaN where the request reported none."""
        values: Floats = arrow.numbers(self.table.column(PREFIX + name), null=np.nan)
        return values

    def int(self, name: str) -> Int64:
        """An integer column as numpy; 0 where it is null (see ``has``)."""
        if name not in self._columns:
            self._columns[name] = arrow.numbers(self.table.column(name))
        values: Int64 = self._columns[name]
        return values

    def has(self, name: str) -> Mask:
        """The rows in which a column is not null."""
        return arrow.present(self.table.column(name))

    def lacks(self, name: str) -> bool:
        """Tells whether a column is null in every row."""
        return bool(self.table.column(name).null_count == len(self))

    @cached_property
    def repeats(self) -> Mask:
        """The rows that are not the first of their turn: what clients sent when they tried again."""
        return self.int("attempt") > 0

    @cached_property
    def later_turns(self) -> Mask:
        """The rows of turns after the first of their session."""
        return self.int("turn") > 1

    @cached_property
    def firsts(self) -> Mask:
        """The rows that are the first of their arrival."""
        return ~(self.repeats | self.later_turns)

    @cached_property
    def lasts(self) -> Mask:
        """The rows that are the last of their turn (of their arrival, where it is no session): whose outcome counts."""
        return np.append(self._begins[1:], True)[: len(self)]

    @cached_property
    def arrived(self) -> Int64:
        """When the turn (the arrival, where it is no session) of each row was due, in ns: when its first row was."""
        return self._due_of_first(self._begins) if self.repeats.any() else self.int("due")

    @cached_property
    def begun(self) -> Int64:
        """When the arrival of each row was due, in ns; of a session its first turn."""
        if not self.later_turns.any():
            return self.arrived
        index = self.int("index")
        return self._due_of_first(np.append(True, index[1:] != index[:-1]))

    @cached_property
    def _begins(self) -> Mask:
        """The rows that are the first of their turn here."""
        index, turn = self.int("index"), self.int("turn")
        changes: Mask = (index[1:] != index[:-1]) | (turn[1:] != turn[:-1])
        return np.append(True, changes)[: len(self)]

    def _due_of_first(self, firsts: Mask) -> Int64:
        """The due time of the last of some rows that stands at each row or before it."""
        dues: Int64 = self.int("due")[np.flatnonzero(firsts)[np.cumsum(firsts) - 1]]
        return dues

    def outcome(self, name: str) -> Mask:
        """The rows with the outcome ``ok``, ``failed`` or ``abandoned``."""
        return self.named("outcome", name)

    def named(self, column: str, name: str) -> Mask:
        """The rows with this name in a column of names."""
        codes, names = self.coded(column)
        mask: Mask = codes == (names.index(name) if name in names else -2)  # null is -1
        return mask

    def coded(self, name: str) -> tuple[Int64, list[str]]:
        """A dictionary column as numbers (-1 where null) and the names they mean."""
        if name not in self._columns:
            self._columns[name] = arrow.coded(self.table.column(name))
        codes, names = self._columns[name]
        return codes, names

    def gaps(self, where: Mask) -> Floats:
        """Every gap between tokens of the selected requests, in seconds."""
        chosen = self.table.column("gaps").filter(arrow.truths(where))
        flat = pa.chunked_array([lists.flatten() for lists in chosen.chunks], pa.uint32())
        seconds: Floats = arrow.numbers(flat) / 1e6
        return seconds

    def parts(self, *_columns: str) -> Iterator[Records]:
        """The records as one part, which is in memory with all its columns; see ``parts.InParts``."""
        if len(self):
            yield self

    def between(self, first: Index, stop: Index) -> Records:
        """The records at these places."""
        return Records(self.table.slice(first, stop - first))

    def in_order_of_arrival(self) -> Records:
        """The same records by when their turns were due; the attempts of one stay together, in their order."""
        order = np.argsort(self.arrived, kind="stable")
        return Records(self.table.take(arrow.column(order.astype(np.int64))).combine_chunks())

    def since(self, start_ns: Index) -> Records:
        """The same records on a clock that begins that much later."""
        table = self.table
        for name in set(_INSTANTS) & set(table.column_names):
            shifted = pc.subtract(table.column(name), start_ns)
            table = table.set_column(table.column_names.index(name), SCHEMA.field(name), shifted)
        return Records(table)

    def where(self, mask: Mask) -> Records:
        """The selected records."""
        return Records(self.table.filter(arrow.truths(mask)))
