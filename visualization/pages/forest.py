"""A comparison as a forest plot: each metric's change from one side to the other, with its interval. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inference_benchmarker.words.text import one_line, shortened
from visualization.comparison.report import cells, of_one_time
from visualization.figures.figures import Bar, Table, TableRow

if TYPE_CHECKING:
    from visualization.comparison.changes import MetricChange
    from visualization.comparison.comparison import Comparison

_AT = 4
"""The column of the interval, in which it is drawn."""
_LOOKED_AT, _LONG = 500, 32  # of a name above a column; the title has it whole
_DECIDED = ("worse", "improved")
_KEY = "A dot is the change, and its line is the 95% interval. If the line crosses the middle, there may be no change."


def forest(comparison: Comparison) -> Table | None:
    """A row for each metric that both sides have; None where there is none."""
    rows = [row for row in comparison.rows if row.change is not None]
    if not rows:
        return None
    base, new = comparison.base.name, comparison.new.name
    shown = [(row, tuple(cells(row, comparison.rows))) for row in rows]
    table_rows = tuple(TableRow(texts, strong=texts[-1] in _DECIDED, bar=_bar(row)) for row, texts in shown)
    head = ("Metric", _short(base), _short(new), "change", "95% interval", "verdict")
    notes = tuple(filter(None, (_KEY, of_one_time(comparison.rows))))
    return Table(f"From {base} to {new}", head, table_rows, notes, bar_at=_AT, signed=True)


def _short(name: str) -> str:
    return shortened(one_line(name, _LOOKED_AT), _LONG)


def _bar(row: MetricChange) -> Bar | None:
    """In percent; None where the interval has no end, or there is none."""
    if row.change is None or row.low is None or row.high is None or math.isinf(row.high):
        return None
    return Bar(100 * row.change, 100 * row.low, 100 * row.high)
