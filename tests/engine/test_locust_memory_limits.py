"""What Locust's primary writes and remembers in a wave of hours."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.primary.locust_memory_limits import HISTORY_ENTRIES, KEPT_S, BoundedHistory, forget

if TYPE_CHECKING:
    from collections.abc import Iterable


class Written:
    """Keeps the rows that it is given."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    def writerow(self, row: Iterable[Any], /) -> None:
        self.rows.append(list(row))


def test_names_have_rows_as_long_as_there_is_room_and_all_together_always() -> None:
    written = Written()
    history = BoundedHistory(written, most=500)
    for second in range(100):
        for name in ("resnet", "bert", "Aggregated"):
            history.writerow(iter([second, 1, "invoke", name, 2.5]))
    names = [row[3] for row in written.rows]
    assert names.count("Aggregated") == 100
    assert 3 < names.count("resnet") < 20
    assert sum(len(str(cell)) + 1 for row in written.rows if row[3] != "Aggregated" for cell in row) <= 500


def test_of_the_counts_of_seconds_the_newest_stay() -> None:
    def entry() -> SimpleNamespace:
        return SimpleNamespace(num_reqs_per_sec=dict.fromkeys(range(36_000), 5), num_fail_per_sec={})

    stats: Any = SimpleNamespace(total=entry(), entries={"a": entry()}, history=list(range(10_000)), errors={})
    forget(stats)
    for each in (stats.total, *stats.entries.values()):
        assert sorted(each.num_reqs_per_sec) == list(range(36_000 - KEPT_S - 1, 36_000))
    assert stats.history == list(range(10_000 - HISTORY_ENTRIES, 10_000))


_ERRORS = """
from locust.stats import RequestStats
from inference_benchmarker.engine.primary.locust_memory_limits import MOST_ERRORS, forget
stats = RequestStats()
for number in range(5 * MOST_ERRORS):
    stats.log_error("invoke", "invoke", f"RuntimeError(request {number})")
    stats.log_error("invoke", "invoke", "TimeoutError()")
    if number % 700 == 0:
        forget(stats)
forget(stats)
assert len(stats.errors) <= MOST_ERRORS
assert sum(error.occurrences for error in stats.errors.values()) == 10 * MOST_ERRORS
assert max(error.occurrences for error in stats.errors.values() if "Timeout" in error.error) == 5 * MOST_ERRORS
assert stats.total.num_failures == 10 * MOST_ERRORS
"""


def test_errors_that_all_read_differently_are_counted_and_the_rarest_as_one() -> None:
    """In a process of its own: it imports Locust."""
    done = subprocess.run([sys.executable, "-c", _ERRORS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
