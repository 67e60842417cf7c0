"""Runs -> a set of bars for each label and for each kind of error. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from inference_benchmarker.words.text import one_line
from visualization.figures.figures import STATISTICS, Bar, Bars
from visualization.figures.runs import Run, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCES = ("labels", "errors")
"""The sources of these bars: a run that has nothing of a name has no row there."""

MOST = 12
_LONG = 120


def label_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """The latency of each label, at most ``MOST``, those of most requests; those of a run beside one another."""
    by_run = [_rows(run, "labels", "label") for run in runs]
    chosen = _most_frequent(by_run, "sent")
    for name in sorted(chosen, key=lambda name: [name in rows for rows in by_run].index(True)):
        rows = [rows.get(name, {}) for rows in by_run]
        bars = {choice: tuple(_time(row, key) for row in rows) for choice, key in STATISTICS.items()}
        yield Bars("label", one_line(name, _LONG) or "no label", "ms", "labels", bars)


def error_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """The failed requests of each kind, the most frequent first, at most ``MOST``."""
    by_run = [_rows(run, "errors", "key") for run in runs]
    for name in _most_frequent(by_run, "count"):
        bars = tuple(_count(run, rows.get(name)) for run, rows in zip(runs, by_run, strict=True))
        yield Bars("error", one_line(name, _LONG), "", "errors", {"": bars})


def left_out(runs: Sequence[Run], key: str, name: str) -> int:
    """The number of labels or errors beyond ``MOST``."""
    names = {each for run in runs for each in _rows(run, key, name)}
    return max(len(names) - MOST, 0)


def _rows(run: Run, key: str, name: str) -> dict[str, dict[str, Any]]:
    """The rows of a summary that anybody may have written, by their name."""
    given = run.facts.get(key)
    rows = [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
    return {str(row[name]): row for row in rows if name in row}


def _most_frequent(by_run: Sequence[dict[str, dict[str, Any]]], count: str) -> list[str]:
    totals: Counter[str] = Counter()
    for rows in by_run:
        for name, row in rows.items():
            totals[name] += int(number(row, count) or 0)
    return [name for name, _ in totals.most_common(MOST)]


def _time(row: dict[str, Any], key: str) -> Bar:
    seconds = number(row, "latency", key)
    return Bar(None if seconds is None else 1e3 * seconds)


def _count(run: Run, row: dict[str, Any] | None) -> Bar:
    """None failed so where the run has a summary that does not name it; its first text as a note."""
    if row is None:
        return Bar(0.0 if run.number("success_rate") is not None else None)
    texts = row.get("texts")
    text = one_line(str(texts[0]), _LONG) if isinstance(texts, list) and texts else ""
    return Bar(number(row, "count"), note=text)
