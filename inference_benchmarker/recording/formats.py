"""The formats of recordings: what a file is, where its times stand, and its rows, a block after the other."""

from __future__ import annotations

import csv
import gzip
import io
import json
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.recording import access_log
from inference_benchmarker.recording.clock import (
    NAMES,
    Clock,
    coarsest,
    plain_name,
    split_unit,
)
from inference_benchmarker.recording.log_source import balancer_source, log_source
from inference_benchmarker.recording.source import (
    BLOCK,
    JSON,
    TYPED,
    Block,
    Lines,
    Source,
    clock_for,
    of_lines,
    time_column,
)
from inference_benchmarker.system.files import own_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEAD_BYTES = 1 << 16
_MOST_LINE = 1 << 24
_MOST_GROWTH = 1_000  # of a column that is unpacked; text that people or programs wrote grows tenfold
_UNPACKED = 1 << 26  # bytes that any column may have
_AZURE = {"timestamp", "contexttokens", "generatedtokens"}
_MOONCAKE = {"timestamp", "input_length", "output_length"}


@contextmanager
def opened_source(path: Path, column: str = "") -> Iterator[Source]:
    """Open a recording and find out what it is; BenchmarkError for what is none."""
    try:
        with path.open("rb") as file:
            head = file.peek(_HEAD_BYTES)[:4]
            if head == b"PAR1":
                with pa.OSFile(own_path(file)) as source:
                    yield _parquet(path, source, column)
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
    if line.startswith("["):
        raise BenchmarkError(f"{path}: begins with a JSON array.", "Write an object a line: JSON lines.")
    if line.startswith("{"):
        return _json(path, rest, wanted, unit)
    if access_log.is_log(line):
        return log_source(path, rest, wanted)
    if access_log.is_alb(line):
        return balancer_source(path, rest, wanted, "AWS ALB access log", access_log.ALB_NAMES)
    if access_log.is_clb(line):
        return balancer_source(path, rest, wanted, "AWS CLB access log", access_log.CLB_NAMES)
    return _csv(path, rest, wanted, unit)


def _csv(path: Path, lines: Iterator[tuple[int, str]], column: str, unit: str) -> Source:
    number, first = next(lines)
    delimiter = max(",;\t|", key=first.count)
    reader = csv.reader((text for _, text in chain([(number, first)], lines)), delimiter=delimiter)
    names = tuple(name.strip() for name in next(reader))
    column = time_column(path, names, column)
    rows = _cells(path, reader, number - 1, len(names))
    known = {plain_name(name) for name in names}
    format_name = "Azure's LLM trace" if known >= _AZURE else "CSV"
    return of_lines(path, Lines(format_name, names, rows), column, unit)


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
    column = time_column(path, names, column)
    mooncake = set(names) >= _MOONCAKE
    if mooncake and column == "timestamp":
        unit = unit or "ms"

    def rows() -> Iterator[tuple[int, list[Any]]]:
        for number, line in chain([first], lines):
            if text := line.strip():
                yield number, [_object(path, number, text).get(column), text]

    read = Lines("Mooncake's trace" if mooncake else "JSON lines", (column, ""), rows(), JSON)
    return of_lines(path, read, column, unit)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BenchmarkError(f"{path}, line {number:,}: expected a JSON object, found {line.strip()[:60]!r}.")
    return found


def _parquet(path: Path, file: pa.NativeFile, column: str) -> Source:
    wanted, unit = split_unit(column)
    parquet = pq.ParquetFile(file)
    schema = parquet.schema_arrow
    column = time_column(path, tuple(schema.names), wanted)
    _check_size(path, parquet.metadata)
    kind = schema.field(column).type
    blocks = _parquet_blocks(parquet, column)
    first = next(blocks, None)
    if first is None:
        raise BenchmarkError(f"{path}: has no row.", "Give a file with a row for each request.")
    if pa.types.is_timestamp(kind):
        clock = Clock(f"timestamps in {NAMES[kind.unit]}", _zone(kind.tz), coarsest(first.times), int)
    else:
        clock = clock_for(path, "row", column, first, unit)
    return Source(path, "parquet", column, TYPED, clock, chain([first], blocks), place="row")


def _check_size(path: Path, metadata: pq.FileMetaData) -> None:
    """Refuse a file that would fill the memory once it is unpacked: Arrow has no bound of its own for a value."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            chunk = group.column(place)
            unpacked, packed = chunk.total_uncompressed_size, max(chunk.total_compressed_size, 1)
            if unpacked > max(_UNPACKED, min(_MOST_GROWTH * packed, _MOST_LINE * group.num_rows)):
                raise BenchmarkError(
                    f"{path}: the column {chunk.path_in_schema} has {unpacked >> 20:,} MiB in {group.num_rows:,} rows, "
                    f"and {packed:,} bytes in the file.",
                    f"At most {_MOST_LINE >> 20} MiB a row are read, and what grows {_MOST_GROWTH:,} times at most.",
                )


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


def _numbered(file: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(iter(lambda: file.readline(_MOST_LINE), ""), 1):
        if len(line) == _MOST_LINE:
            raise OSError(f"line {number:,} has more than {_MOST_LINE:,} characters")
        yield number, line
