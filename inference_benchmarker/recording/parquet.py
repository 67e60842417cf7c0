"""A recording in parquet: where its times stand, and its rows, a block after the other, in bounded memory."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.recording.clock import NAMES, Clock, coarsest, split_unit
from inference_benchmarker.recording.source import (
    BLOCK,
    BLOCK_BYTES,
    MOST_LINE,
    TYPED,
    RowBlock,
    Source,
    clock_for,
    time_column,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_GROWTH = 1_000  # of a column that is unpacked; text that people or programs wrote grows tenfold
_UNPACKED = 1 << 26  # bytes that any column may have
_LIST_ITEM = 8  # bytes of a number in a list
_AT_ONCE = 1 << 26  # bytes that rows may have which are unpacked together


def parquet_source(path: Path, file: pa.NativeFile, column: str) -> Source:
    """The rows of an open file; ``column``: that of the times, or empty for the one with a usual name."""
    wanted, unit = split_unit(column)
    parquet = pq.ParquetFile(file)
    schema = parquet.schema_arrow
    column = time_column(path, tuple(schema.names), wanted)
    _check_size(path, parquet.metadata)
    kind = schema.field(column).type
    blocks = _blocks(path, parquet, column)
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


def _blocks(path: Path, parquet: pq.ParquetFile, column: str) -> Iterator[RowBlock]:
    before = 0
    for batch in _batches(path, parquet):
        times = batch.column(column)
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("ns", times.type.tz)).cast(pa.int64())
        yield RowBlock(range(before + 1, before + 1 + len(batch)), times.to_pylist(), None, batch)
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
