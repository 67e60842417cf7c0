"""The formats of recordings: what a file is, where its times stand, and its rows, a block after the other."""

from __future__ import annotations

import csv
import gzip
import io
import json
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.recording import access_log
from inference_benchmarker.recording.clock import (
    NAMES,
    Clock,
    clock_of,
    coarsest,
    log_clock,
    no_time,
    plain_name,
    split_unit,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

BLOCK = 2048  # rows that a worker reads at once: it must not hold up arrivals
TEXT, JSON, TYPED = "text", "json", "typed"
"""How the rows of a recording are kept: as texts, as lines of JSON, as typed values."""

TIME_NAMES = (
    *("timestamp", "time", "ts", "arrival_time", "arrival", "arrived_at", "arrived", "datetime", "date_time"),
    *("start_time", "started_at", "start", "request_timestamp", "event_time", "eventtime", "created_at", "created"),
    *("time_local", "unix_time", "epoch", "date", "t"),
)
_HEAD_BYTES = 1 << 16
_MOST_LINE = 1 << 24
_AZURE = {"timestamp", "contexttokens", "generatedtokens"}
_MOONCAKE = {"timestamp", "input_length", "output_length"}
_APACHE = "Apache stamps the begin of a request unless its format says %{end}t: then give --replay-column time_local"


class Block(NamedTuple):
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
    blocks: Iterator[Block]
    note: str = ""
    place: str = "line"

    def where(self, line: int) -> str:
        """The place of a row, as errors name it."""
        return f"{self.path}, {self.place} {line:,}"


class _Lines(NamedTuple):
    """A way to read a text file: the fields of its lines, each with its number, and which of them is the time."""

    format: str
    names: tuple[str, ...]
    rows: Iterator[tuple[int, list[Any]]]
    kind: str = TEXT


@contextmanager
def opened_source(path: Path, column: str = "") -> Iterator[Source]:
    """Open a recording and find out what it is; BenchmarkError for what is none."""
    try:
        with path.open("rb") as file:
            head = file.peek(_HEAD_BYTES)[:4]
            if head == b"PAR1":
                yield _parquet(path, file, column)
                return
            plain = gzip.GzipFile(fileobj=file) if head[:2] == b"\x1f\x8b" else file
            with io.TextIOWrapper(plain, "utf-8-sig", "replace", newline="") as text:
                yield _text(path, text, column)
    except (OSError, EOFError, csv.Error, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise BenchmarkError(f"{path}: cannot be read ({reason}).", "Give a file of recorded requests.") from None


def _text(path: Path, file: io.TextIOWrapper, column: str) -> Source:
    lines = _numbered(file)
    first = next((each for each in lines if each[1].strip()), None)
    if first is None:
        raise BenchmarkError(f"{path}: is empty.", "Give a file with a row for each request.")
    line = first[1].strip()
    rest = chain([first], lines)
    wanted, unit = split_unit(column)
    if line.startswith("{"):
        return _json(path, rest, wanted, unit)
    if access_log.is_log(line):
        return _log(path, rest, wanted)
    if access_log.is_alb(line):
        return _balancer(path, rest, wanted, "AWS ALB access log", access_log.ALB_NAMES)
    if access_log.is_clb(line):
        return _balancer(path, rest, wanted, "AWS CLB access log", access_log.CLB_NAMES)
    return _csv(path, rest, wanted, unit)


def _csv(path: Path, lines: Iterator[tuple[int, str]], column: str, unit: str) -> Source:
    number, first = next(lines)
    delimiter = max(",;\t|", key=first.count)
    reader = csv.reader((text for _, text in chain([(number, first)], lines)), delimiter=delimiter)
    names = tuple(name.strip() for name in next(reader))
    column = _found(path, names, column)
    rows = _cells(path, reader, number - 1, len(names))
    known = {plain_name(name) for name in names}
    format_name = "Azure's LLM trace" if known >= _AZURE else "CSV"
    return _of_lines(path, _Lines(format_name, names, rows), column, unit)


def _cells(path: Path, reader: Any, skipped: int, width: int) -> Iterator[tuple[int, list[Any]]]:
    for row in reader:
        if not row:
            continue
        if len(row) != width:
            place = f"{path}, line {skipped + reader.line_num:,}"
            raise BenchmarkError(f"{place}: has {len(row)} values, and the header names {width}.")
        yield skipped + reader.line_num, row


def _json(path: Path, lines: Iterator[tuple[int, str]], column: str, unit: str) -> Source:
    first = next(lines)
    names = tuple(_object(path, *first))
    column = _found(path, names, column)
    mooncake = set(names) >= _MOONCAKE
    if mooncake and column == "timestamp":
        unit = unit or "ms"

    def rows() -> Iterator[tuple[int, list[Any]]]:
        for number, line in chain([first], lines):
            if text := line.strip():
                yield number, [_object(path, number, text).get(column), text]

    read = _Lines("Mooncake's trace" if mooncake else "JSON lines", (column, ""), rows(), JSON)
    return _of_lines(path, read, column, unit)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BenchmarkError(f"{path}, line {number:,}: expected a JSON object, found {line.strip()[:60]!r}.")
    return found


def _of_lines(path: Path, read: _Lines, column: str, unit: str) -> Source:
    """A source whose times stand in a column, and are those of arrivals."""
    at = read.names.index(column)
    blocks = _blocks(read, at)
    first = next(blocks, None)
    if first is None:
        raise BenchmarkError(f"{path}: has no row.", "Give a file with a row for each request.")
    clock = _clock(path, "line", column, first, unit)
    return Source(path, read.format, column, read.kind, clock, chain([first], blocks))


def _blocks(read: _Lines, at: int) -> Iterator[Block]:
    while rows := list(islice(read.rows, BLOCK)):
        columns = list(zip(*(fields for _, fields in rows), strict=True))
        kept = columns[1:] if read.kind == JSON else columns
        names = read.names[1:] if read.kind == JSON else read.names
        arrays = [pa.array(values, pa.string()) for values in kept]
        schema = pa.schema([(name, pa.string()) for name in names])
        yield Block([number for number, _ in rows], list(columns[at]), None, pa.record_batch(arrays, schema=schema))


def _clock(path: Path, place: str, column: str, first: Block, unit: str) -> Clock:
    try:
        return clock_of(column, first.times, unit)
    except ValueError:
        expected = "seconds or milliseconds, since 1970 or its beginning, or ISO 8601"
        error = no_time(f"{path}, {place} {first.lines[0]:,}, {column}", first.times[0], expected)
        raise BenchmarkError(error.message, f"Expected {expected}; --replay-column names another column.") from None


def _log(path: Path, lines: Iterator[tuple[int, str]], column: str) -> Source:
    def rows() -> Iterator[tuple[int, list[Any]]]:
        for number, line in lines:
            if text := line.strip():
                fields = access_log.log_fields(text)
                if fields is None:
                    raise BenchmarkError(f"{path}, line {number:,}: is no line of an access log: {text[:60]!r}.")
                yield number, fields

    read = _Lines("access log", access_log.LOG_NAMES, rows())
    if column not in ("", "time_local"):
        raise _no_column(path, ("time_local",), column)
    blocks = _blocks(read, access_log.LOG_NAMES.index("time_local"))
    first = next(blocks)
    try:
        clock = log_clock(first.times)
    except ValueError:
        raise no_time(f"{path}, line {first.lines[0]:,}", first.times[0], "10/Oct/2026:13:55:36 +0000") from None
    unit_ns, told = access_log.log_duration_unit(first.rows.column("duration").to_pylist())
    if column or not unit_ns:
        return Source(path, read.format, "time_local", TEXT, clock, chain([first], blocks))

    def with_durations() -> Iterator[Block]:
        for block in chain([first], blocks):
            durations = block.rows.column("duration").to_pylist()
            yield block._replace(durations_ns=[round(float(each or 0) * unit_ns) for each in durations])

    note = f"the start of a request is its stamp less {told}"
    note = note if told == "$request_time" else f"{note} ({_APACHE})"
    return Source(path, read.format, "time_local", TEXT, clock, with_durations(), note)


def _balancer(
    path: Path, lines: Iterator[tuple[int, str]], column: str, format_name: str, names: tuple[str, ...]
) -> Source:
    """A log of a load balancer: its fields have no names there, and there are more of them from year to year."""
    number = next(lines)
    reader = csv.reader((text for _, text in chain([number], lines)), delimiter=" ")
    width = len(names)

    def rows() -> Iterator[tuple[int, list[Any]]]:
        for row in reader:
            if row:
                yield number[0] - 1 + reader.line_num, [*row[:width], *[None] * (width - len(row))]

    if column and column not in names:
        raise _no_column(path, names, column)
    stamp = "time" if "time" in names else "timestamp"
    source = _of_lines(path, _Lines(format_name, names, rows()), column or stamp, "")
    if column or stamp == "timestamp":  # that of a Classic Load Balancer is when it received the request
        return Source(path, format_name, source.column, TEXT, source.clock, source.blocks)

    def with_durations() -> Iterator[Block]:
        for block in source.blocks:
            fields = zip(*(each.to_pylist() for each in block.rows.columns), strict=True)
            took = [_alb_duration(source, *each) for each in zip(block.lines, block.times, fields, strict=True)]
            yield block._replace(durations_ns=took)

    note = "the start of a request is its request_creation_time, or its stamp less the processing times"
    return Source(path, format_name, stamp, TEXT, source.clock, with_durations(), note)


def _alb_duration(source: Source, line: int, time: Any, fields: tuple[Any, ...]) -> int:
    try:
        return access_log.alb_duration_ns(str(time), fields)
    except ValueError:
        raise BenchmarkError(f"{source.where(line)}: is no line of an {source.format}.") from None


def _parquet(path: Path, file: Any, column: str) -> Source:
    wanted, unit = split_unit(column)
    parquet = pq.ParquetFile(file)
    schema = parquet.schema_arrow
    column = _found(path, tuple(schema.names), wanted)
    kind = schema.field(column).type
    blocks = _parquet_blocks(parquet, column)
    first = next(blocks, None)
    if first is None:
        raise BenchmarkError(f"{path}: has no row.", "Give a file with a row for each request.")
    if pa.types.is_timestamp(kind):
        clock = Clock(f"timestamps in {NAMES[kind.unit]}", _zone(kind.tz), coarsest(first.times), int)
    else:
        clock = _clock(path, "row", column, first, unit)
    return Source(path, "parquet", column, TYPED, clock, chain([first], blocks), place="row")


def _zone(name: str | None) -> str:
    return "UTC" if name in (None, "", "UTC", "Etc/UTC", "Z", "+00:00") else str(name)


def _parquet_blocks(parquet: pq.ParquetFile, column: str) -> Iterator[Block]:
    before = 0
    for batch in parquet.iter_batches(BLOCK):
        if not len(batch):
            continue
        times = batch.column(column)
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("ns", times.type.tz)).cast(pa.int64())
        yield Block(range(before + 1, before + 1 + len(batch)), times.to_pylist(), None, batch)
        before += len(batch)


def _found(path: Path, names: tuple[str, ...], wanted: str) -> str:
    """The column of times: the one that is wanted, else the first of the usual names."""
    if wanted:
        if wanted not in names:
            raise _no_column(path, names, wanted)
        return wanted
    plain = {plain_name(name): name for name in reversed(names)}
    usual = next((plain[name] for name in TIME_NAMES if name in plain), None)
    if usual is None:
        shown = ", ".join(names[:20])[:300]
        raise BenchmarkError(
            f"{path}: no column is called as times are (timestamp, time, ts, arrival_time, ...); it has {shown}.",
            "Name it with --replay-column.",
        )
    return usual


def _no_column(path: Path, names: Iterable[str], wanted: str) -> BenchmarkError:
    shown = ", ".join(names)[:300]
    return BenchmarkError(f"--replay-column {wanted}: {path} has no such column.", f"It has {shown}.")


def _numbered(file: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(iter(lambda: file.readline(_MOST_LINE), ""), 1):
        if len(line) == _MOST_LINE:
            raise OSError(f"line {number:,} has more than {_MOST_LINE:,} characters")
        yield number, line
