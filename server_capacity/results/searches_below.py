"""Checks a ranking against its searches, as far as they are there. ValueError for two numbers that disagree."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from inference_benchmarker.data.json_file import foreign_content_of, read_json
from inference_benchmarker.system.files import is_file
from inference_benchmarker.words.redact import quoted
from server_capacity.results.codec import check_capacity
from server_capacity.results.ranking_row import Aim, row_of
from server_capacity.results.types.axes import unnumbered
from server_capacity.results.types.result_status import FAILED, OPEN

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.ranking import RankedRow, RankingResult

_CAPACITY = "capacity.json"


def require_searches(folder: Path, found: RankingResult) -> None:
    """Check a ranking against its searches."""
    named = Counter(row.capacity for row in found.rows if row.capacity)
    if twice := [name for name, number in named.items() if number > 1]:
        raise ValueError(f"{twice[0]} is the search of more than one row")
    for row in found.rows:
        name = row.capacity
        if not name or "/" in name or name in (".", "..") or row.outcome == FAILED:  # which no search is read by
            continue
        if found.built_on is not None and name not in found.built_on:
            raise ValueError(f"{quoted(name, 40)} is not among the searches that it is built on")
        if search := search_below(folder, name):
            _require_search_of(row, name, search, found)


def search_below(folder: Path, name: str) -> CapacityResult | None:
    """The search in a folder below one, checked by itself; None where it is gone. BenchmarkError names its own file."""
    path = folder / name / _CAPACITY
    if not is_file(path):
        return None
    with foreign_content_of(path):
        return check_capacity(read_json(path, inside=folder))


def _require_search_of(row: RankedRow, name: str, search: CapacityResult, found: RankingResult) -> None:
    arguments = (search.endpoint.arguments if search.endpoint else None) or {}
    for key, value in row.variant.items():
        if key in arguments and not _is_same(unnumbered(value), arguments[key]):
            raise ValueError(f"{name} was searched with {key}={arguments[key]}, not {key}={value}")
    made = row_of(row.variant, name, search, None, Aim(found.target_rps, found.utilisation))
    if row.rate != made.rate:
        raise ValueError(f"{name} found a rate other than {row.rate}")
    if row.exit_code is not None and row.exit_code != made.exit_code:
        raise ValueError(f"{name} has exit code {made.exit_code}, not {row.exit_code}")
    of_both = [(key, getattr(row, key), getattr(made, key)) for key in _same_keys(row)]
    if other := next((key for key, here, there in of_both if here != there), None):
        raise ValueError(f"{name} has another {other} than the ranking says")
    may_lack = made.outcome in OPEN and not row.warnings  # an earlier version had no words on these
    if row.rank is not None and bool(row.warnings) != bool(made.warnings) and not may_lack:
        raise ValueError(f"the warnings of {name} are not those that the ranking has")


def _same_keys(row: RankedRow) -> tuple[str, ...]:
    """The parts of a row that are its search's: an earlier version stored no more of its end than the outcome."""
    keys = ("outcome", "interval", "limit", "latency", "instances", "endpoint", "seconds_to_create", "tokens_each")
    return keys if row.exit_code is None else (*keys, "ended", "confirmed")


def _is_same(text: object, value: object) -> bool:
    """Tells whether a value of a variant, which is a text there, is this argument: 1e3 is 1000.0, and true is True."""
    try:
        return float(str(text)) == float(str(value))
    except ValueError:
        return str(text).lower() == str(value).lower()
