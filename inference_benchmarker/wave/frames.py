"""A wave's records for pandas and others: as a whole, some columns and rows of them, or in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.parquet import filters_to_expression

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.columns import Records, metrics_in, schema_of
from inference_benchmarker.records.parts import PART
from inference_benchmarker.words.redact import hidden
from inference_benchmarker.words.suggest import meant, question

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from inference_benchmarker.records.parts import InParts

Filter = Any
"""An Arrow expression, or tuples as pandas takes them: ``[("outcome", "==", "ok")]``."""

_AHEAD = 1  # batches that are read before they are asked for: Arrow's own 16 grow with the file
_LIST_BYTES = 120
"""Of an array of its own, which pandas makes of the gaps of each request; and 4 bytes for each gap."""


class Selection:
    """Some columns and rows of a wave's records, or of a dataset of them.

    BenchmarkError for a column or a filter that is none.
    """

    def __init__(self, source: ds.Dataset | InParts, columns: Sequence[str] | None, where: Filter | None) -> None:
        metrics = metrics_in(source.schema.names) if isinstance(source, ds.Dataset) else source.metrics
        self._schema = schema_of(metrics)
        names = list(self._schema.names if columns is None else columns)
        for name in names:
            if name not in self._schema.names:
                raise _no_column(name, self._schema.names)
        self._source, self._names = source, names
        try:
            self._where = filters_to_expression(where) if isinstance(where, list) else where
            self.rows = sum(int(scanner.count_rows()) for scanner in self._scanners())
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise BenchmarkError(
                f"where={where!r} selects no rows: {hidden(str(error)).splitlines()[0]}.",
                'Give tuples like [("outcome", "==", "ok")], or an expression of pyarrow.compute.',
            ) from None

    @property
    def bytes(self) -> int:
        """About the memory that a pandas frame of it takes."""
        return sum(self.rows * _width(self._schema.field(name).type) for name in self._names) + 4 * self._gaps()

    def frame(self, most_bytes: int) -> pd.DataFrame:
        """The whole of it; BenchmarkError where it would take more than so many bytes."""
        if self.bytes > most_bytes:
            raise BenchmarkError(
                f"A frame of {self.rows:,} requests and {len(self._names)} columns takes about {self.bytes / 1e9:.1f} "
                f"GB of memory; {most_bytes / 1e9:.1f} GB may be used.",
                "Choose columns (frame(columns=[...])) or rows (frame(where=[...])), go through batches(), or let "
                "DuckDB or Arrow compute on dataset().",
            )
        tables = [scanner.to_table() for scanner in self._scanners()]
        frame: pd.DataFrame = pa.concat_tables(tables).unify_dictionaries().to_pandas()
        return frame

    def batches(self, rows: int) -> Iterator[pd.DataFrame]:
        """Frames of at most so many rows, in the order of the records; their numbers of rows go on."""
        first = 0
        for batch in self._batches(self._names, rows):
            if batch.num_rows:
                frame = batch.to_pandas()
                frame.index += first
                first += batch.num_rows
                yield frame

    def _batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        for scanner in self._scanners(names, rows):
            yield from scanner.to_batches()

    def _scanners(self, names: list[str] | None = None, rows: int = PART) -> Iterator[ds.Scanner]:
        """Of each part; a wave without a request has one."""
        for dataset in self._datasets():
            chosen = names or self._names
            yield dataset.scanner(columns=chosen, filter=self._where, batch_size=rows, batch_readahead=_AHEAD)

    def _datasets(self) -> Iterator[ds.Dataset]:
        if isinstance(self._source, ds.Dataset):
            yield self._source
        elif isinstance(self._source, Records):
            yield ds.dataset(self._source.table)
        else:
            yield from (ds.dataset(part.table) for part in self._source.parts())

    def _gaps(self) -> int:
        if "gaps" not in self._names or not self.rows:
            return 0
        return sum(len(batch.column(0).flatten()) for batch in self._batches(["gaps"], PART))


def in_memory(records: InParts) -> ds.Dataset:
    """A dataset of records that are in no file. BenchmarkError where they would take more than half of what is free."""
    from psutil import virtual_memory

    if isinstance(records, Records):
        return ds.dataset(records.table)
    tables, free = [], virtual_memory().available // 2
    for part in records.parts():
        tables.append(part.table)
        free -= part.table.nbytes
        if free < 0:
            raise BenchmarkError(
                f"The {len(records):,} requests are not in a file with today's columns, and do not fit into memory.",
                "Go through batches(), or choose columns (frame(columns=[...])) or rows (frame(where=[...])).",
            )
    return ds.dataset(pa.concat_tables(tables).unify_dictionaries())


def _width(kind: pa.DataType) -> int:
    if pa.types.is_list(kind):
        return _LIST_BYTES
    return 4 if pa.types.is_dictionary(kind) else 8


def _no_column(name: str, names: Sequence[str]) -> BenchmarkError:
    near = question(meant(str(name), names))
    return BenchmarkError(
        f"{name!r} is not a column of a wave's records.{near}",
        f"There are {', '.join(names)}.",
    )
