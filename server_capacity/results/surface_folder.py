"""The folder of a surface: ``surface.json``, its text, ``surface.csv``, and the searches' folders by their lengths."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.system.files import replace_file
from server_capacity.results.codec import check_surface
from server_capacity.results.searches_below import search_below
from server_capacity.results.stored import Stored, writable
from server_capacity.results.surface_checks import searched_point
from server_capacity.results.text.surface import headline, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from server_capacity.results.types.surface import PredictedPoint, SearchedPoint, SurfaceResult

KIND = "surface"
FILE, CSV_FILE = "surface.json", "surface.csv"
_HEAD = ("input_tokens", "output_tokens", "from", "rate", "low", "high", "beyond")


def with_headline(found: SurfaceResult) -> SurfaceResult:
    """The same with the sentence that answers it."""
    return replace(found, headline=headline(found))


def searches(folder: Path, found: SurfaceResult) -> list[Path]:
    """The folders of its searches."""
    return [folder / row.capacity for row in found.searches if row.capacity]


def save(folder: Path, found: SurfaceResult) -> SurfaceResult:
    """Write its files; BenchmarkError where they cannot be written."""
    with writable(folder):
        replace_file(folder / CSV_FILE, to_csv(found))
    return _STORED.save(folder, with_headline(found))


def to_csv(found: SurfaceResult) -> str:
    """A row for each search, and for each point of the grid."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_HEAD)
    table.writerows(_rows(found))
    return text.getvalue()


def _rows(found: SurfaceResult) -> Iterator[tuple[Any, ...]]:
    for search in found.searches:
        yield _row(search, f"search, {search.use.replace('_', ' ')}", "")
    for point in found.grid:
        yield _row(point, "fit", point.beyond)


def _row(row: SearchedPoint | PredictedPoint, source: str, beyond: str) -> tuple[Any, ...]:
    ends = (row.interval.low, row.interval.high) if row.interval else ("", "")
    return row.input_tokens, row.output_tokens, source, "" if row.rate is None else row.rate, *ends, beyond


def _require_searches(folder: Path, found: SurfaceResult) -> None:
    """ValueError where a row differs from the search that it names, if that is there; words are not compared."""
    for row in found.searches:
        search = None if row.capacity is None else search_below(folder, row.capacity)
        if row.capacity is None or search is None:
            continue
        made = searched_point(row.input_tokens, row.output_tokens, row.use, row.capacity, search)
        if row.confirmed is None:  # an earlier version did not store it
            made = replace(made, confirmed=None)
        if replace(made, headline=row.headline, warnings=row.warnings, predicted=row.predicted) != row:
            raise ValueError(f"{row.capacity} has another answer than its row")


def _decode(data: dict[str, Any]) -> SurfaceResult:
    return with_headline(check_surface(data))


_STORED = Stored(FILE, "surface.txt", to_text, _decode, _require_searches)
load, read, is_surface = _STORED.load, _STORED.read, _STORED.is_in
