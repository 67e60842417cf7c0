"""A wave's records for pandas and others: as a whole, some columns and rows of them, or in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.parquet import filters_to_expression

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.columns import SCHEMA
from inference_benchmarker.suggest import meant, question

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    import pyarrow.dataset as ds

Filter = Any
"""An Arrow expression, or tuples as pandas takes them: ``[("outcome", "==", "ok")]``."""

_LIST_BYTES = 120
"""Of an array of its own, which pandas makes of the gaps of each request; and 4 bytes for each gap."""


class Selection:
    """Some columns and rows of a dataset of records. BenchmarkError for a column or a filter that is none."""

    def __init__(self, dataset: ds.Dataset, columns: Sequence[str] | None, where: Filter | None) -> None:
        names = list(SCHEMA.names if columns is None else columns)
        for name in names:
            if name not in SCHEMA.names:
                raise _no_column(name)
        self._dataset, self._names = dataset, names
        try:
            self._where = filters_to_expression(where) if isinstance(where, list) else where
            self.rows = int(self._scanner().count_rows())
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise BenchmarkError(
                f"where={where!r} chooses no rows: {str(error).splitlines()[0]}.",
                'Give tuples like [("outcome", "==", "ok")], or an expression of pyarrow.compute.',
            ) from None

    @property
    def bytes(self) -> int:
        """About the memory that a pandas frame of it takes."""
        return sum(self.rows * _width(SCHEMA.field(name).type) for name in self._names) + 4 * self._gaps()

    def frame(self, most_bytes: int) -> pd.DataFrame:
        """The whole of it; BenchmarkError where it would take more than so many bytes."""
        if self.bytes > most_bytes:
            raise BenchmarkError(
                f"A frame of {self.rows:,} requests and {len(self._names)} columns takes about {self.bytes / 1e9:.1f} "
                f"GB of memory; {most_bytes / 1e9:.1f} GB may be used.",
                "Choose columns (frame(columns=[...])) or rows (frame(where=[...])), go through batches(), or let "
                "DuckDB or Arrow compute on dataset().",
            )
        frame: pd.DataFrame = self._scanner().to_table().to_pandas()
        return frame

    def batches(self, rows: int) -> Iterator[pd.DataFrame]:
        """Frames of at most so many rows, in the order of the records; their numbers of rows go on."""
        first = 0
        for batch in self._scanner(rows).to_batches():
            if batch.num_rows:
                frame = batch.to_pandas()
                frame.index += first
                first += batch.num_rows
                yield frame

    def _scanner(self, rows: int = 131_072) -> ds.Scanner:
        return self._dataset.scanner(columns=self._names, filter=self._where, batch_size=rows)

    def _gaps(self) -> int:
        if "gaps" not in self._names or not self.rows:
            return 0
        lists = self._dataset.scanner(columns=["gaps"], filter=self._where).to_batches()
        return sum(len(batch.column(0).flatten()) for batch in lists)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_list(kind):
        return _LIST_BYTES
    return 4 if pa.types.is_dictionary(kind) else 8


def _no_column(name: str) -> BenchmarkError:
    near = question(meant(str(name), SCHEMA.names))
    return BenchmarkError(
        f"{name!r} is no column of a wave's records.{near}",
        f"There are {', '.join(SCHEMA.names)}.",
    )
