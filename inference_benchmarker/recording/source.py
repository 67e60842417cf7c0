"""A recording that is being read, whatever its format: its rows, a block after the other, and its column of times."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.recording.clock import Clock, clock_of, no_time, plain_name
from inference_benchmarker.words.redact import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

BLOCK = 2048  # rows that a worker reads at once: it must not hold up arrivals
BLOCK_BYTES = 4 << 20
"""The same of bytes: a block ends with the row that reaches it, whatever its size, so that memory does not grow."""
MOST_LINE = 1 << 24
"""Characters of a line, and bytes of a row."""
TEXT, JSON, TYPED = "text", "json", "typed"
"""How the rows of a recording are kept: as texts, as lines of JSON, as typed values."""

TIME_NAMES = (
    *("timestamp", "time", "ts", "arrival_time", "arrival", "arrived_at", "arrived", "datetime", "date_time"),
    *("start_time", "started_at", "start", "request_timestamp", "event_time", "eventtime", "created_at", "created"),
    *("time_local", "unix_time", "epoch", "date", "t"),
)


class RowBlock(NamedTuple):
    """Rows in the order of the file: the line of each, its time as it stands there, how long it took, its fields."""

    lines: Sequence[int]
    times: list[Any]
    durations_ns: list[int] | None
    rows: pa.RecordBatch


@dataclass(frozen=True)
class Source:
    """A recording that is being read. ``place``: what its rows are counted in."""

    path: Path
    format: str
    column: str
    kind: str
    clock: Clock
    blocks: Iterator[RowBlock]
    note: str = ""
    place: str = "line"

    def where(self, line: int) -> str:
        """The place of a row, as errors name it."""
        return f"{self.path}, {self.place} {line:,}"


class Lines(NamedTuple):
    """A way to read a text file: the fields of its lines, each with its number, and which of them is the time."""

    format: str
    names: tuple[str, ...]
    rows: Iterator[tuple[int, list[Any]]]
    kind: str = TEXT


def cells_of(lines: Iterable[str], delimiter: str) -> Any:
    """The rows of a table as ``csv.reader`` has them; a field may be as long as a line.

    The limit is the process's: who else reads tables bounds their files.
    """
    csv.field_size_limit(MOST_LINE)
    return csv.reader(lines, delimiter=delimiter)


def of_lines(path: Path, read: Lines, column: str, unit: str) -> Source:
    """A source whose times stand in a column, and are those of arrivals."""
    at = read.names.index(column)
    blocks = blocks_of(read, at)
    first = next(blocks, None)
    if first is None:
        raise BenchmarkError(f"{path}: has no row.", "Give a file with a row for each request.")
    clock = clock_for(path, "line", column, first, unit)
    return Source(path, read.format, column, read.kind, clock, chain([first], blocks))


def blocks_of(read: Lines, at: int) -> Iterator[RowBlock]:
    """The lines of a text file, some at once; ``at`` is the number of the field that holds the time."""
    while rows := list(_of_a_block(read.rows)):
        columns = list(zip(*(fields for _, fields in rows), strict=True))
        kept = columns[1:] if read.kind == JSON else columns
        names = read.names[1:] if read.kind == JSON else read.names
        arrays = [pa.array(values, pa.string()) for values in kept]
        schema = pa.schema([(name, pa.string()) for name in names])
        yield RowBlock([number for number, _ in rows], list(columns[at]), None, pa.record_batch(arrays, schema=schema))


def _of_a_block(rows: Iterator[tuple[int, list[Any]]]) -> Iterator[tuple[int, list[Any]]]:
    size = 0
    for number, fields in islice(rows, BLOCK):
        yield number, fields
        size += sum(len(field) for field in fields if isinstance(field, str))
        if size >= BLOCK_BYTES:
            return


def clock_for(path: Path, place: str, column: str, first: RowBlock, unit: str) -> Clock:
    """The clock of a column by its first block; BenchmarkError where that holds no times."""
    try:
        return clock_of(column, first.times, unit)
    except ValueError:
        expected = "seconds or milliseconds, since 1970 or its beginning, or ISO 8601"
        error = no_time(f"{path}, {place} {first.lines[0]:,}, {column}", first.times[0], expected)
        raise BenchmarkError(error.message, f"Expected {expected}; --replay-column names another column.") from None


def time_column(path: Path, names: tuple[str, ...], wanted: str) -> str:
    """The column of times: the one that is wanted, else the first of the usual names."""
    if wanted:
        if wanted not in names:
            raise no_column(path, names, wanted)
        return wanted
    plain = {plain_name(name): name for name in reversed(names)}
    usual = next((plain[name] for name in TIME_NAMES if name in plain), None)
    if usual is None:
        shown = excerpt(", ".join(names[:20]), 300)
        raise BenchmarkError(
            f"{path}: no column has a usual name for times (timestamp, time, ts, arrival_time, ...); it has {shown}.",
            "Name it with --replay-column.",
        )
    return usual


def no_column(path: Path, names: Iterable[str], wanted: str) -> BenchmarkError:
    """The error of a column that was named and is not there."""
    shown = excerpt(", ".join(names), 300)
    return BenchmarkError(f"--replay-column {wanted}: {path} has no such column.", f"It has {shown}.")
