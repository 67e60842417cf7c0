"""``counts.parquet``: the counts of a wave of which no record was kept but those of the slowest requests.

A row for each count that is not zero. Rows without a second are of the whole wave, and have a name: a label, a finish
reason or an error.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inference_benchmarker.data.json_file import UNREADABLE, foreign
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records import arrow
from inference_benchmarker.records.check import MOST_COUNT
from inference_benchmarker.records.counts import COLUMNS, WHATS, Counts, LabelCounts, Series, check_series
from inference_benchmarker.records.histogram import MOST_BUCKET
from inference_benchmarker.records.names import MAX_NAME_LENGTH
from inference_benchmarker.system.files import most_in_memory, opened, own_path, replacing
from inference_benchmarker.wave.files.identity import marked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

_NAMES = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("what", _NAMES, nullable=False),
        pa.field("second", pa.int32()),
        pa.field("stage", pa.int32()),
        pa.field("name", _NAMES),
        pa.field("key", pa.int32(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
    ]
)
_KINDS = (np.int16, np.uint16, np.int32, np.uint32, np.int64)
_ROW_BYTES = 32
_FEW = 100_000
_FINISH, _FIRST, _ERROR = "finish_reason", "first", "error"
_LABEL = "label_"


def write_counts(path: Path, counts: Counts, start_unix_ns: int) -> None:
    """Write those of the wave that began then, so that a reader sees the old file or the whole new one."""
    delta = dict.fromkeys(("second", "stage", "key", "count"), "DELTA_BINARY_PACKED")
    with (
        replacing(path) as file,
        pq.ParquetWriter(
            file,
            marked(SCHEMA, start_unix_ns),
            compression="zstd",
            use_dictionary=["what", "name"],
            column_encoding=delta,
        ) as writer,
    ):
        for what, series in counts.series.items():
            writer.write_table(_table_of(what, series))
        writer.write_table(_named_table(list(_named(counts))))


def read_counts(path: Path) -> Counts:
    """The counts of a run directory; BenchmarkError for another file, a damaged one, and one too large to hold."""
    parts: defaultdict[str, list[Series]] = defaultdict(list)
    named: list[dict[str, Any]] = []
    try:
        with opened(path) as file, pa.OSFile(own_path(file)) as source:
            parquet = pq.ParquetFile(source)
            if parquet.schema_arrow != SCHEMA:
                raise BenchmarkError(f"{path}: does not have the columns that this tool writes.")
            _check_size(parquet.metadata, os.fstat(file.fileno()).st_size)
            for number in range(parquet.num_row_groups):
                table = parquet.read_row_group(number)
                table.validate(full=True)
                own = table.column("second").is_valid()
                for what, part in _by_what(table.filter(own)):
                    parts[what].append(_series(part))
                named += _rows(table.filter(pa.compute.invert(own)))
        return _counts({what: _joined(parts.pop(what)) for what in list(parts)}, named)
    except (OSError, MemoryError, *UNREADABLE) as error:
        raise foreign(path, error) from None


def _table_of(what: str, series: Series) -> pa.Table:
    size = len(series.second)
    columns = {
        "what": pa.DictionaryArray.from_arrays(arrow.column(np.zeros(size, np.int32)), arrow.texts([what])),
        "name": pa.nulls(size, _NAMES),
        **{name: arrow.column(getattr(series, name).astype(np.int32)) for name in ("second", "stage", "key")},
        "count": arrow.column(series.count.astype(np.int64)),
    }
    return pa.table([columns[field.name] for field in SCHEMA], schema=SCHEMA)


def _named(counts: Counts) -> Iterator[tuple[str, str, int, int]]:
    for number, key in enumerate(counts.errors):
        yield _ERROR, key, number, 0
    for key, instant in counts.first.items():
        yield _FIRST, key, 0, instant
    for reason, count in counts.finish_reasons.items():
        yield _FINISH, reason, 0, count
    for label, found in counts.labels.items():
        for outcome in ("ok", "failed", "abandoned"):
            yield _LABEL + outcome, label, 0, getattr(found, outcome)
        for name, times in found.times.items():
            yield from ((_LABEL + name, label, bucket, count) for bucket, count in sorted(times.items()))


def _named_table(rows: list[tuple[str, str, int, int]]) -> pa.Table:
    columns = dict(zip(("what", "name", "key", "count"), zip(*rows, strict=True), strict=False)) if rows else {}
    nothing = [None] * len(rows)
    arrays = [pa.array(columns.get(field.name, nothing), field.type) for field in SCHEMA]
    return pa.table(arrays, schema=SCHEMA)


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows with names, of which each row gets a copy in memory: so none may be long."""
    names = [each.dictionary.to_pylist() for column in ("what", "name") for each in table.column(column).iterchunks()]
    if any(len(name) > MAX_NAME_LENGTH for own in names for name in own):
        raise ValueError("a name is too long")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _by_what(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each kind; a row group of ours has one."""
    column = table.column("what").combine_chunks()
    codes, names = arrow.numbers(column.indices), column.dictionary.to_pylist()
    for code in np.unique(codes).tolist():
        mine = codes == code
        yield names[code], table if mine.all() else table.filter(arrow.truths(mine))


def _series(table: pa.Table) -> Series:
    return Series.of(*(_narrow(arrow.numbers(table.column(name))) for name in COLUMNS))


def _joined(parts: list[Series]) -> Series:
    return (
        parts[0]
        if len(parts) == 1
        else Series.of(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))
    )


def _narrow(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same values in the least whole numbers that hold them, which do not keep the file's in memory."""
    ends = (int(values.min(initial=0)), int(values.max(initial=0)))
    kind = next(kind for kind in _KINDS if all(np.iinfo(kind).min <= end <= np.iinfo(kind).max for end in ends))
    return values.astype(kind)


def _counts(series: dict[str, Series], named: list[dict[str, Any]]) -> Counts:
    errors: dict[int, str] = {}
    first: dict[str, int] = {}
    reasons: dict[str, int] = {}
    labels: defaultdict[str, LabelCounts] = defaultdict(LabelCounts)
    for row in named:
        what, name, key, count = (row[column] for column in ("what", "name", "key", "count"))
        least = -MOST_COUNT if what == _FIRST else 0
        if not (least <= count <= MOST_COUNT and 0 <= key <= max(MOST_BUCKET, len(named))):
            raise ValueError(f"{what} is {count:,} by {key:,}")
        if what == _ERROR:
            errors[key] = name
        elif what == _FIRST:
            first[name] = count
        elif what == _FINISH:
            reasons[name] = count
        elif what.removeprefix(_LABEL) in ("ok", "failed", "abandoned"):
            setattr(labels[name], what.removeprefix(_LABEL), count)
        elif what.removeprefix(_LABEL) in WHATS:
            labels[name].times[what.removeprefix(_LABEL)][key] += count
    if None in {*errors.values(), *first, *reasons, *labels} or sorted(errors) != list(range(len(errors))):
        raise ValueError("a name is missing")
    check_series(series, len(errors))
    return Counts(series, tuple(errors[number] for number in range(len(errors))), first, labels, reasons)


def _check_size(metadata: pq.FileMetaData, size: int) -> None:
    """Raise ValueError where a file has more rows than its bytes hold, or than memory does."""
    rows = metadata.num_rows
    unpacked = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    if rows > 64 * size + _FEW or max(rows * _ROW_BYTES, unpacked) > most_in_memory():
        raise ValueError(f"{size:,} bytes with {rows:,} counts")
