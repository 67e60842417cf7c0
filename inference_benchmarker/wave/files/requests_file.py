"""``requests.parquet``: a wave's requests on disk, written and read part by part. Whose file it is, is not known.

Its columns are ``records.columns.SCHEMA``.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inference_benchmarker.data.json_file import UNREADABLE, foreign
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records import arrow
from inference_benchmarker.records.check import RecordsCheck
from inference_benchmarker.records.columns import SCHEMA, Records, metrics_in, schema_of
from inference_benchmarker.records.parts import PART, RecordParts
from inference_benchmarker.records.record import OUTCOMES
from inference_benchmarker.records.user_metrics import PREFIX, is_metric_name
from inference_benchmarker.system.files import forget_drafts, is_file, most_in_memory, opened, own_path, replacing
from inference_benchmarker.system.progress import tell
from inference_benchmarker.wave.files.identity import marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyarrow.dataset import Dataset

MOST_AT_ONCE = 1 << 28
"""Bytes of a wave that is held in memory as a whole, where it has no more requests than a part."""
_MOST_GATHERED = 1 << 26
_ROW_BYTES, _GAP_BYTES, _METRIC_BYTES = 128, 4, 8
_MOST_METRICS = 1 << 12  # of a wave, whose workers have names of their own
_FEW = 100_000
_REPEATING = ("attempt", "worker", "label", "outcome", "error", "finish_reason", "turn", "ended")
_STEADY = [field.name for field in SCHEMA if field.type == pa.int64()]
_WRITING: dict[str, Any] = {
    "compression": "snappy",  # what is left to compress after the differences is little: zstd takes twice the time
    "column_encoding": dict.fromkeys([*_STEADY, "gaps.list.element"], "DELTA_BINARY_PACKED"),
    "write_batch_size": PART,  # or each column comes in 64 pieces, and of each its statistics
    "write_statistics": ["index", "due", "sent", "done"],
}


@dataclass(frozen=True, slots=True)
class Requests:
    """A wave's requests, the warm-up's first, and what was found when they were ``checked``."""

    records: Records | RecordParts
    checked: RecordsCheck


class FileSource:
    """Reads the parts of a wave from groups of rows of its file, which it keeps open; a ``Source``."""

    def __init__(self, file: pq.ParquetFile, groups: Sequence[Sequence[int]]) -> None:
        self._file, self._groups = file, groups
        metadata = file.metadata
        self.lengths = [sum(metadata.row_group(number).num_rows for number in own) for own in groups]
        self._known = _known(file.schema_arrow)
        self.metrics = metrics_in(self._known)

    def read(self, part: int, columns: Sequence[str]) -> Records:
        """The rows of a part; OSError and pyarrow's errors where the file is not what it was."""
        names = columns or schema_of(self.metrics).names
        known = [name for name in self._known if name in names]
        table = self._file.read_row_groups(self._groups[part], known, use_threads=False)
        return Records(_todays_columns(table, names).combine_chunks())


def read_requests(path: Path, part: int = PART) -> Requests:
    """The requests of a run directory, in memory where they are no more than a ``part``.

    BenchmarkError for another file, a damaged one, and one whose parts are too large to hold.
    """
    try:
        parquet, size = _opened(path)
        if not _has_our_columns(parquet.schema_arrow):
            raise BenchmarkError(f"{path}: does not have the columns that this tool writes.")
        return _checked(parquet, size, part)
    except (OSError, MemoryError, *UNREADABLE) as error:
        raise foreign(path, error) from None


def in_file(path: Path) -> RecordParts:
    """The requests of a file that was just written, which are there already."""
    parquet, _ = _opened(path)
    return RecordParts(FileSource(parquet, [[number] for number in range(parquet.num_row_groups)]))


def outcomes_in(path: Path) -> Counter[str]:
    """The number of requests of the window by outcome, in a file that was checked: two columns of it are read.

    OSError, and ValueError for a file of another kind.
    """
    parquet, _ = _opened(path)
    found: Counter[str] = Counter()
    for number in range(parquet.num_row_groups):
        part = FileSource(parquet, [[number]]).read(0, ("index", "outcome"))
        in_window = part.int("index") >= 0
        found.update({outcome: int((in_window & part.outcome(outcome)).sum()) for outcome in OUTCOMES})
    return found


def write_requests(path: Path, parts: Iterable[Records], start_unix_ns: int) -> None:
    """Write those of the wave that began then, a group of rows for each part.

    A reader sees the old file or the whole new one.
    """
    forget_drafts(path)  # they may be large
    coming = iter(parts)
    part = next(coming, None)
    schema = SCHEMA if part is None else part.table.schema
    repeating = [*_REPEATING, *(PREFIX + name for name in metrics_in(schema.names))]
    kept = marked(schema, start_unix_ns)
    with replacing(path) as file, pq.ParquetWriter(file, kept, use_dictionary=repeating, **_WRITING) as writer:
        while part is not None:
            if len(part):
                writer.write_table(part.table, row_group_size=len(part))
            part = None  # or it would be in memory beside the next
            part = next(coming, None)
    pa.default_memory_pool().release_unused()


def dataset(path: Path) -> Dataset | None:
    """The window's records in a file, of which nothing is read yet; None where they have not today's columns."""
    import pyarrow.dataset as ds  # slow to load, and few ask for it

    options = ds.ParquetFragmentScanOptions(pre_buffer=False)  # or whole columns of the file are read ahead
    kind = ds.ParquetFileFormat(default_fragment_scan_options=options)
    found = ds.dataset(str(path), format=kind) if is_file(path) else None
    if found is None or found.schema != schema_of(metrics_in(found.schema.names)):
        return None
    return found.filter(ds.field("index") >= 0)


def _opened(path: Path) -> tuple[pq.ParquetFile, int]:
    """A file that is open as long as somebody has it, and its bytes."""
    with opened(path) as file:
        return pq.ParquetFile(pa.OSFile(own_path(file))), os.fstat(file.fileno()).st_size


def _checked(parquet: pq.ParquetFile, size: int, part: int) -> Requests:
    """Reads the file through, once."""
    groups = [_Group.of(parquet.metadata.row_group(number)) for number in range(parquet.metadata.num_row_groups)]
    _check_size(groups, size)
    check, rows, of = RecordsCheck(), 0, sum(group.rows for group in groups)
    parts: list[list[int]] = []
    for own in _gathered(groups, part):
        _check_room(groups, own)
        records = FileSource(parquet, [own]).read(0, ())
        records.table.validate(full=True)
        check.take(records)
        rows += len(records)
        tell(f"Checking {of:,} requests", rows, of)
        if parts and len(records) and records.int("attempt")[0]:  # older versions parted the attempts of an arrival
            parts[-1] += own
            _check_room(groups, parts[-1])
        else:
            parts.append(own)
        if len(own) == len(groups):
            return Requests(records, check)
        del records  # or it would be in memory beside the next
    source = FileSource(parquet, parts)
    return Requests(RecordParts(source) if parts else Records(SCHEMA.empty_table()), check)


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of rows in a file: their number, that of their values where it is greatest, and about their bytes."""

    rows: int
    values: int
    bytes: int

    @classmethod
    def of(cls, group: Any) -> _Group:
        columns = [group.column(number) for number in range(group.num_columns)]
        metrics = sum(column.path_in_schema.startswith(PREFIX) for column in columns)
        rows, values = group.num_rows, max((column.num_values for column in columns), default=0)
        unpacked = sum(column.total_uncompressed_size for column in columns)
        width = _ROW_BYTES + _METRIC_BYTES * metrics
        return cls(rows, values, max(unpacked, rows * width + values * _GAP_BYTES))


def _gathered(groups: Sequence[_Group], part: int) -> Iterator[list[int]]:
    """The numbers of the groups of each part: small ones together, as large as those of ours."""
    if sum(group.rows for group in groups) <= part and sum(group.bytes for group in groups) <= MOST_AT_ONCE:
        yield from [[*range(len(groups))]] if groups else []
        return
    own: list[int] = []
    rows = taken = 0
    for number, group in enumerate(groups):
        if own and (rows + group.rows > part // 2 or taken + group.bytes > _MOST_GATHERED):
            yield own
            own, rows, taken = [], 0, 0
        own.append(number)
        rows, taken = rows + group.rows, taken + group.bytes
    yield own


def _check_size(groups: Sequence[_Group], size: int) -> None:
    """Raise ValueError where it would unpack to more than a wave of its size, which has some bytes a request."""
    rows, values = sum(group.rows for group in groups), sum(group.values for group in groups)
    if any(group.rows < 0 for group in groups) or rows > 8 * size + _FEW or values > 64 * size + _FEW:
        raise ValueError(f"{size:,} bytes do not hold {rows:,} requests")


def _check_room(groups: Sequence[_Group], part: Iterable[int]) -> None:
    own = [groups[number] for number in part]
    if sum(group.bytes for group in own) > most_in_memory():
        raise ValueError(f"{sum(group.rows for group in own):,} requests do not fit in this machine's memory")


def _has_our_columns(schema: pa.Schema) -> bool:
    """Tells whether all columns of a wave are there, and of their types; others beside them are left alone."""
    known = _known(schema)
    ours = schema_of(metrics_in(known))
    needed = {field.name for field in SCHEMA if not field.nullable} - {"attempt"}  # which older ones lack
    return all(schema.field(name) == ours.field(name) for name in known) and needed <= set(known)


def _known(schema: pa.Schema) -> list[str]:
    """Those of a file's columns that this tool writes; ValueError for more metrics than the workers of a wave have."""
    metrics = [PREFIX + name for name in metrics_in(schema.names) if is_metric_name(name)]
    if len(metrics) > _MOST_METRICS:
        raise ValueError(f"{len(metrics):,} metrics")
    return [name for name in schema.names if name in SCHEMA.names] + sorted(metrics)


def _todays_columns(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """The columns of ``requests.parquet`` as they are called now; the one place where older schemas are mapped.

    What an older one had no column for is null; each of its requests is the only attempt of its arrival.
    """
    wanted = set(names)
    schema = pa.schema([field for field in schema_of(metrics_in(table.column_names)) if field.name in wanted])
    columns = [
        table.column(field.name) if field.name in table.column_names else _missing(len(table), field)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _missing(size: int, field: pa.Field) -> pa.Array:
    return pa.nulls(size, field.type) if field.nullable else arrow.column(np.zeros(size, np.uint16))
