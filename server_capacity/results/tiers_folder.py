"""The folder of several tiers: ``tiers.json``, its text, and the folder of each tier's search, by the tier's name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.exit_codes import worst_exit_code
from inference_benchmarker.version import SCHEMA_VERSION
from server_capacity.results.codec import check_tiers
from server_capacity.results.searches_below import search_below
from server_capacity.results.stored import Stored
from server_capacity.results.text.tiers import headline, to_text
from server_capacity.results.tiers_checks import tier_row
from server_capacity.results.types.tiers import TiersResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from server_capacity.results.types.tiers import TierRow, Unit

KIND = "tiers"
FILE = "tiers.json"


def tiers_result(rows: Sequence[TierRow], created: str, name: str | None, in_: Unit = "rps") -> TiersResult:
    """The result that these rows make; ``in_``: what their rates are."""
    code = worst_exit_code(*(row.exit_code for row in rows))
    return _with_headline(
        TiersResult(schema_version=SCHEMA_VERSION, created=created, name=name, in_=in_, exit_code=code, rows=list(rows))
    )


def _decode(data: dict[str, Any]) -> TiersResult:
    return _with_headline(check_tiers(data))


def _with_headline(found: TiersResult) -> TiersResult:
    return replace(found, headline=headline(found))


def searches(folder: Path, found: TiersResult) -> list[Path]:
    """The folders of its rows."""
    return [folder / row.capacity for row in found.rows if row.capacity]


def _require_searches(folder: Path, found: TiersResult) -> None:
    """ValueError where a row differs from the search that it names, if that is there.

    Words are compared only as far as there are any: another version may have had others.
    """
    for row in found.rows:
        search = None if row.capacity is None else search_below(folder, row.capacity)
        if row.capacity is None or search is None:
            continue
        made = tier_row(row.tier, row.capacity, search)
        if replace(made, headline=row.headline, warnings=row.warnings) != row or bool(made.warnings) != bool(
            row.warnings
        ):
            raise ValueError(f"{row.capacity} has another answer than the row of {row.tier}")
        if search.in_ != found.in_:
            raise ValueError(f"{row.capacity} is a search in {search.in_}, not in {found.in_}")


_STORED = Stored(FILE, "tiers.txt", to_text, _decode, _require_searches, searches)
save, load, read, is_tiers = _STORED.save, _STORED.load, _STORED.read, _STORED.is_in
