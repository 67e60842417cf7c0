"""The folder of a ranking: ``ranking.json``, its text, and the folder of each search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.results.codec import check_ranking
from server_capacity.results.ranking_order import of_today, require_order
from server_capacity.results.searches_below import require_searches
from server_capacity.results.stored import Stored
from server_capacity.results.text.ranking import to_text

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from server_capacity.results.types.ranking import RankingResult

KIND = "ranking"
FILE = "ranking.json"


def _decode(data: dict[str, Any]) -> RankingResult:
    found = check_ranking(data)
    require_order(found)
    return of_today(found)


def searches(folder: Path, found: RankingResult) -> list[Path]:
    """The folders of its rows: another search may be going on beside them, and be stored again."""
    return [folder / row.capacity for row in found.rows if row.capacity]


_STORED = Stored(FILE, "ranking.txt", to_text, _decode, require_searches, searches)
save, load, read, is_ranking = _STORED.save, _STORED.load, _STORED.read, _STORED.is_in
