"""``client.csv``: rows added as they come, and columns read back, whoever wrote them."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from inference_benchmarker.data.typed import MOST_FLOAT
from inference_benchmarker.facts.client_samples import Sample
from inference_benchmarker.system.files import add_text, read_bytes
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Table = dict[str, list[float | None]]

MOST_TABLE, _MOST_CELLS, _MOST_PROCESSES = 256 * MIB, 40_000_000, 2_000


def begin_client_table(path: Path) -> bool:
    """Write the head of client.csv; False where the file does not take it."""
    return _append(path, [Sample._fields])


def add_to_client_table(path: Path, samples: Iterable[Sample]) -> bool:
    """Add a row for each sample; False where the file does not take them, or would be too large to be read."""
    return _append(path, samples)


def read_client_table(path: Path, start_s: float) -> dict[str, Table]:
    """CPU by process; ``second`` is that of the wave, which began at ``start_s`` on the wall clock."""
    processes: dict[str, Table] = {}
    for row in _rows(path):
        if row["cpu_percent"] is None:  # cut off within a line
            continue
        table = processes.setdefault(row["process"], {"second": [], "cpu_percent": []})
        table["second"].append(finite(row["unix_s"]) - start_s)
        table["cpu_percent"].append(finite(row["cpu_percent"]))
    if len(processes) > _MOST_PROCESSES:
        raise ValueError(f"has {len(processes):,} processes")
    return processes


def finite(value: str | float) -> float:
    """A number to compute with; ValueError for another."""
    found = float(value)
    if not abs(found) < MOST_FLOAT:
        raise ValueError(f"{value} is not a usable number")
    return found


def _append(path: Path, rows: Iterable[Iterable[object]]) -> bool:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return add_text(path, text.getvalue(), MOST_TABLE // 2)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    data = read_bytes(path, MOST_TABLE)
    if data.count(b",") + data.count(b"\n") > _MOST_CELLS:
        raise ValueError(f"has more than {_MOST_CELLS:,} cells")
    try:
        yield from csv.DictReader(io.StringIO(data.decode(), newline=""))
    except csv.Error as error:
        raise ValueError(str(error)) from None
