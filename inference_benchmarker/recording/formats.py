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
    BLOCK_BYTES,
    JSON,
    MOST_LINE,
    TYPED,
    Block,
    Lines,
    Source,
    clock_for,
    of_lines,
    time_column,
)
from inference_benchmarker.system.files import own_path
from inference_benchmarker.system.progress import tell
from inference_benchmarker.words.redact import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from _typeshed import WriteableBuffer

_HEAD_BYTES = 1 << 16
_MOST_GROWTH = 1_000  # of a column that is unpacked; text that people or programs wrote grows tenfold
_UNPACKED = 1 << 26  # bytes that any column may have
_LIST_ITEM = 8  # bytes of a number in a list
_AT_ONCE = 1 << 26  # bytes that rows may have which are unpacked together
_MOST_BLANK = 1_000_000  # lines in a row: as many as rows that are not wanted
_MOST_COLUMNS = 10_000
_AT_A_TIME = 1 << 17  # bytes
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_AZURE = {"timestamp", "contexttokens", "generatedtokens"}
_MOONCAKE = {"timestamp", "input_length", "output_length"}


@contextmanager
def opened_source(path: Path, column: str = "") -> Iterator[Source]:
    """Open a recording and find out what it is; BenchmarkError for what is none."""
    with _opened(path) as file:
        if file.peek(_HEAD_BYTES)[:4] == b"PAR1":
            with pa.OSFile(own_path(file)) as source:
                yield _parquet(path, source, column)
            return
        with _decoded(path, file) as text:
            yield _text(path, text, column)


@contextmanager
def opened_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a text, packed by gzip or not; BenchmarkError for what is none, or cannot be read to its end."""
    with _opened(path) as file:
        if file.peek(_HEAD_BYTES)[:4] == b"PAR1":
            raise BenchmarkError(f"{path}: is parquet, and conversations are read from text.", "Write JSON lines.")
        with _decoded(path, file) as text:
            yield text


class _Followed(io.FileIO):
    """A file that tells whoever listens how far it is read; a large one takes minutes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._what = f"Reading {path.name}"
        self._size = self.seek(0, io.SEEK_END) if self.seekable() else 0
        self._at = self.seek(0) if self.seekable() else 0

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Read a part, and tell."""
        read = super().readinto(buffer)
        self._at += read or 0
        if self._at < self._size:
            tell(self._what, self._at, self._size)
        return read

    def close(self) -> None:
        """Close it: nothing is read any more."""
        if not self.closed:
            tell(self._what, 1, 1)
        super().close()


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    try:
        file: io.BufferedReader = io.BufferedReader(_Followed(path), _AT_A_TIME)
        with file:
            yield file
    except (OSError, EOFError, csv.Error, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise BenchmarkError(f"{path}: cannot be read ({reason}).", "Give a file of recorded requests.") from None


def _decoded(path: Path, file: io.BufferedReader) -> io.TextIOWrapper:
    plain = gzip.GzipFile(fileobj=file) if file.peek(_HEAD_BYTES)[:2] == b"\x1f\x8b" else file
    if plain.peek(_HEAD_BYTES)[:2] in _UTF_16:
        raise BenchmarkError(
            f"{path}: is UTF-16, and recordings are read as UTF-8.", "`iconv -f UTF-16 -t UTF-8` rewrites it."
        )
    return io.TextIOWrapper(plain, "utf-8-sig", "replace", newline="")


def _text(path: Path, file: io.TextIOWrapper, column: str) -> Source:
    lines = _numbered(file)
    first = next((each for each in lines if each[1].strip()), None)
    if first is None:
        raise BenchmarkError(f"{path}: is empty.", "Give a file with a row for each request.")
    line = first[1].strip()
    rest = chain([first], lines)
    wanted, unit = split_unit(column)
    if line.startswith("["):
        raise BenchmarkError(f"{path}: begins with a JSON array.", "Write one object per line: JSON lines.")
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
    if len(names) > _MOST_COLUMNS:
        raise BenchmarkError(f"{path}: has {len(names):,} columns.", f"Give at most {_MOST_COLUMNS:,} of them.")
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
        raise BenchmarkError(f"{path}, line {number:,}: expected a JSON object, found {quoted(line.strip(), 60)}.")
    return found


def _parquet(path: Path, file: pa.NativeFile, column: str) -> Source:
    wanted, unit = split_unit(column)
    parquet = pq.ParquetFile(file)
    schema = parquet.schema_arrow
    column = time_column(path, tuple(schema.names), wanted)
    _check_size(path, parquet.metadata)
    kind = schema.field(column).type
    blocks = _parquet_blocks(path, parquet, column)
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
        rows = metadata.row_group(number).num_rows
        for chunk, unpacked in _chunks(metadata, number):
            packed = max(chunk.total_compressed_size, 1)
            if unpacked > max(_UNPACKED, min(_MOST_GROWTH * packed, MOST_LINE * rows)):
                raise BenchmarkError(
                    f"{path}: the column {chunk.path_in_schema} has {unpacked >> 20:,} MiB in {rows:,} rows, "
                    f"and {packed:,} bytes in the file.",
                    f"At most {MOST_LINE >> 20} MiB per row are read, at most {_MOST_GROWTH:,} times the packed size.",
                )


def _chunks(metadata: pq.FileMetaData, number: int) -> Iterator[tuple[pq.ColumnChunkMetaData, int]]:
    """The columns of a group of rows, each with its bytes once it is unpacked: those of lists are in few places."""
    group = metadata.row_group(number)
    for place in range(group.num_columns):
        chunk, in_lists = group.column(place), metadata.schema.column(place).max_repetition_level > 0
        yield chunk, max(chunk.total_uncompressed_size, _LIST_ITEM * chunk.num_values * in_lists)


def _rows_at_once(metadata: pq.FileMetaData) -> int:
    """The number of rows that are unpacked together: as many as there is room for where all are as large as can be.

    A value is in its column once, at least, and a value of a text has no more than is read of a row.
    """
    largest = 1
    for number in range(metadata.num_row_groups):
        large = (
            min(unpacked, MOST_LINE)
            for chunk, unpacked in _chunks(metadata, number)
            if chunk.physical_type == "BYTE_ARRAY" or unpacked > chunk.total_uncompressed_size
        )
        largest = max(largest, sum(large))
    return min(max(_AT_ONCE // largest, 1), BLOCK)


def _zone(name: str | None) -> str:
    return "UTC" if name in (None, "", "UTC", "Etc/UTC", "Z", "+00:00") else str(name)


def _parquet_blocks(path: Path, parquet: pq.ParquetFile, column: str) -> Iterator[Block]:
    before = 0
    for batch in _batches(path, parquet):
        times = batch.column(column)
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("ns", times.type.tz)).cast(pa.int64())
        yield Block(range(before + 1, before + 1 + len(batch)), times.to_pylist(), None, batch)
        before += len(batch)


def _batches(path: Path, parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """The rows, in batches of a block's size."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in _small_batches(path, parquet):
        if held and (rows + len(batch) > BLOCK or size + batch.nbytes > BLOCK_BYTES):
            yield _as_one(held)
            held, rows, size = [], 0, 0
        held, rows, size = [*held, batch], rows + len(batch), size + batch.nbytes
    if held:
        yield _as_one(held)


def _small_batches(path: Path, parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """The rows as they are unpacked, of large ones a few at a time; BenchmarkError for one that is too large."""
    before = 0
    for batch in parquet.iter_batches(_rows_at_once(parquet.metadata)):
        columns = [each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in batch.columns]
        waiting = [pa.record_batch(columns, names=batch.schema.names)] if len(batch) else []
        while waiting:
            few = waiting.pop()
            if few.nbytes > BLOCK_BYTES and (half := len(few) // 2):
                waiting += [few.slice(half), few.slice(0, half)]
                continue
            before += len(few)
            if few.nbytes > MOST_LINE * len(few):
                raise BenchmarkError(
                    f"{path}, row {before:,}: has {few.nbytes >> 20:,} MiB.",
                    f"At most {MOST_LINE >> 20} MiB per row are read.",
                )
            yield few


def _as_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


def _numbered(file: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    blank = 0
    for number, line in enumerate(iter(lambda: file.readline(MOST_LINE), ""), 1):
        if len(line) == MOST_LINE:
            raise OSError(f"line {number:,} has more than {MOST_LINE:,} characters")
        blank = blank + 1 if line.isspace() else 0
        if blank > _MOST_BLANK:
            raise OSError(f"line {number:,} is the last of more than {_MOST_BLANK:,} blank ones")
        yield number, line
