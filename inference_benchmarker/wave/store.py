"""``requests.parquet``: written whole, and read back only as far as it is what this tool writes and fits in memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.files import most_in_memory, opened, replacing
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.wave.run_dir import UNREADABLE, foreign

if TYPE_CHECKING:
    from pathlib import Path

_ROW_BYTES, _GAP_BYTES = 128, 4
_FEW = 100_000


def read_records(path: Path) -> Records:
    """The records of a run directory; BenchmarkError for another file, a damaged one, and one too large to hold."""
    try:
        with opened(path) as file:
            parquet = pq.ParquetFile(file)
            if parquet.schema_arrow != SCHEMA:
                raise BenchmarkError(f"{path}: has other columns than this tool writes.")
            _check_size(parquet.metadata, os.fstat(file.fileno()).st_size)
            table = parquet.read().combine_chunks()
        table.validate(full=True)
        records = Records(table)
        records.check()
    except (OSError, MemoryError, *UNREADABLE) as error:
        raise foreign(path, error) from None
    return records


def write_records(path: Path, records: Records) -> None:
    """Write them so that a reader sees the old file or the whole new one."""
    with replacing(path) as file:
        pq.write_table(records.table, file, compression="zstd")


def _check_size(metadata: Any, size: int) -> None:
    """Raise ValueError where it would unpack to more than a wave of its size, which has some bytes a request."""
    rows = metadata.num_rows
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values = sum(max(group.column(number).num_values for number in range(group.num_columns)) for group in groups)
    unpacked = sum(
        group.column(number).total_uncompressed_size for group in groups for number in range(group.num_columns)
    )
    if rows < 0 or rows > size + _FEW or values > 64 * size + _FEW:
        raise ValueError(f"{size:,} bytes do not hold {rows:,} requests")
    if max(unpacked, rows * _ROW_BYTES + values * _GAP_BYTES) > most_in_memory():
        raise ValueError(f"{rows:,} requests do not fit in this machine's memory")
