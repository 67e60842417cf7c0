"""``timeline.csv`` read back as columns, whoever wrote it and however long its wave was."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np
from pyarrow import csv as arrow
from pyarrow import float64

from inference_benchmarker.data.typed import MOST_FLOAT
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.system.files import read_bytes
from inference_benchmarker.wave.files.client_table import MOST_TABLE

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.wave.files.client_table import Table

_STAGE, _SECOND = "stage", "second"
_ROUNDING = 1e-6  # of what it tells in microseconds
MOST_SECONDS, MOST_ROWS = 3_000_000, 20_000  # 35 days; of what is kept of them


def read_timeline(path: Path) -> Table:
    """The columns of numbers by name; None where a cell is empty.

    Of a long wave some seconds become a row: of counts the mean, of each p99 the worst, of each p50 the median.
    ``second`` is the first of them.
    """
    data = read_bytes(path, MOST_TABLE)
    if not data:
        return {}
    if (lines := data.count(b"\n")) > MOST_SECONDS:
        raise ValueError(f"has {lines:,} lines, more than {MOST_SECONDS:,}")
    size = -(-lines // MOST_ROWS) or 1
    found = {name: _folded(values, name, size) for name, values in _columns(data).items()}
    return {name: [None if np.isnan(value) else float(value) for value in column] for name, column in found.items()}


def check_timeline(path: Path, facts: WaveFacts) -> None:
    """Raise ValueError where a column differs from the one that follows from the wave's requests."""
    stored, found = _columns(read_bytes(path, MOST_TABLE)), _columns(timeline(facts).encode())
    for name in stored.keys() & found.keys():
        if len(stored[name]) != len(found[name]):
            raise ValueError(f"has {len(stored[name]):,} seconds, and its wave {len(found[name]):,}")
        odd = ~np.isclose(stored[name], found[name], rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)
        if odd.any():
            second = int(np.flatnonzero(odd)[0])
            raise ValueError(
                f"{name} of second {second:,} is {stored[name][second]:g}, "
                f"and {found[name][second]:g} follows from the requests"
            )


def _columns(data: bytes) -> dict[str, npt.NDArray[np.float64]]:
    """The columns of numbers in a table, NaN where a cell is empty."""
    try:
        (names, *_) = [*csv.reader(io.StringIO(data[: data.find(b"\n")].decode())), []]
    except csv.Error as error:
        raise ValueError(str(error)) from None
    numbers = [name for name in names if name != _STAGE]
    stored = arrow.read_csv(
        io.BytesIO(data),
        convert_options=arrow.ConvertOptions(
            include_columns=numbers, column_types=dict.fromkeys(numbers, float64()), null_values=[""]
        ),
    )
    found = {name: stored.column(name).to_numpy() for name in numbers}
    for name, values in found.items():
        written = np.count_nonzero(np.isnan(values)) > stored.column(name).null_count
        if written or np.nanmax(np.abs(values), initial=0.0) >= MOST_FLOAT:
            raise ValueError(f"{name} has a value that is not a usable number")
    return found


def _folded(values: npt.NDArray[np.float64], name: str, size: int) -> npt.NDArray[Any]:
    """So many neighbours as one."""
    if size == 1:
        return values
    padded = np.append(values, np.full(-len(values) % size, np.nan)).reshape(-1, size)
    if name == _SECOND:
        return padded[:, 0]
    fold = np.nanmax if "p99" in name else np.nanmedian if "p50" in name else np.nanmean
    known = ~np.isnan(padded).all(axis=1)
    found = np.full(len(padded), np.nan)
    found[known] = fold(padded[known], axis=1)
    return found
