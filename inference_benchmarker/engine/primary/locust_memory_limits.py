"""Bounds for what Locust's primary writes and remembers, which grows with the length of a wave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from locust.stats import RequestStats, StatsError

    from inference_benchmarker.words.csv_cells import Rows

MOST_HISTORY = 64 << 20
"""Characters of the history in which each name has a row a second; then only all names together have one."""
KEPT_S = 60  # seconds of which Locust counts each; it looks at the last twelve
HISTORY_ENTRIES = 2_880  # of Locust's page, one in five seconds: four hours
MOST_ERRORS = 1_000  # each text is one of Locust's; an endpoint may put the request's own id into it
OTHER_ERRORS = "other errors"
FORGETTING_S = 10.0
_NAME, _ALL_NAMES = 3, "Aggregated"


class BoundedHistory:
    """Hands the rows of Locust's history on: those of single names as long as there is room for them."""

    def __init__(self, rows: Rows, most: int = MOST_HISTORY) -> None:
        self._rows = rows
        self._left = most

    def writerow(self, row: Iterable[Any], /) -> Any:
        """Write one row, or leave it out."""
        cells = list(row)
        self._left -= sum(len(str(cell)) + 1 for cell in cells)
        if self._left >= 0 or cells[_NAME] == _ALL_NAMES:
            self._rows.writerow(cells)


def keep_small(stats: RequestStats, sleep: Callable[[float], object]) -> None:
    """Forget, every few seconds and until this greenlet is ended, what Locust would keep of a whole wave."""
    while True:
        sleep(FORGETTING_S)
        forget(stats)


def forget(stats: RequestStats) -> None:
    """Forget the counts of seconds that Locust does not look at any more, and the oldest points of its page.

    Of too many errors the rarest become one, so that their number stays.
    """
    for entry in (stats.total, *stats.entries.values()):
        for counts in (entry.num_reqs_per_sec, entry.num_fail_per_sec):
            newest = max(counts, default=0)
            for second in [second for second in counts if second < newest - KEPT_S]:
                del counts[second]
    del stats.history[:-HISTORY_ENTRIES]
    if len(stats.errors) > MOST_ERRORS:
        _join_rare(stats.errors)


def _join_rare(errors: dict[str, StatsError]) -> None:
    from locust.stats import StatsError  # which patches the process

    others = errors.pop(OTHER_ERRORS, None) or StatsError("", "", OTHER_ERRORS)
    for key in sorted(errors, key=lambda key: errors[key].occurrences)[: -MOST_ERRORS // 2]:
        others.occurrences += errors.pop(key).occurrences
    errors[OTHER_ERRORS] = others
