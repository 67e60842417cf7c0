"""Runs -> the strip below their time: the server's instances, those that serve and those that were asked for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.words.text import one_line
from visualization.figures.figures import SIGNS, Line, Mark, Strip
from visualization.figures.runs import Run, below, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TITLE, SERVE, ASKED_FOR = "Instances", "serve", "asked for"
_MOST_STEPS, _MOST_MARKS, _LONG = 2_000, 100, 200


def instances_strip(runs: Sequence[Run]) -> Strip | None:
    """The strip of all runs; None where no number of instances changed, and no alarm said that one should."""
    lines = [line for index, run in enumerate(runs) for line in _lines(index, run)]
    marks = [mark for index, run in enumerate(runs) for mark in _marks(index, run)]
    changed = any(len({count for _, count in line.points}) > 1 for line in lines)
    told = any(mark.sign != SIGNS["load"] for mark in marks)
    return Strip(TITLE, tuple(lines), tuple(marks)) if lines and (changed or told) else None


def _followed(run: Run) -> list[Mapping[str, Any]]:
    """The rows of a summary that anybody may have written."""
    rows = below(run.facts, "instances", "followed")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _lines(index: int, run: Run) -> Iterator[Line]:
    for row in _followed(run):
        for name, key in ((SERVE, "current"), (ASKED_FOR, "desired")):
            points = [(at, count) for step in _listed(row, "steps")[:_MOST_STEPS] for at, count in _point(step, key)]
            if points:
                end = max(run.number("window", "duration_s") or 0.0, points[-1][0])
                held = (*points, (end, points[-1][1]))
                yield Line(index, name, held, dashed=key == "desired", stepped=True)


def _point(step: Any, key: str) -> Iterator[tuple[float, float]]:
    at, count = number(step, "at_s"), number(step, key)
    if at is not None and count is not None:
        yield at, count


def _marks(index: int, run: Run) -> Iterator[Mark]:
    for row in _followed(run):
        for event in _listed(row, "events")[:_MOST_MARKS]:
            at, kind = number(event, "at_s"), below(event, "kind")
            if at is not None and isinstance(kind, str) and kind in SIGNS:
                yield Mark(index, at, SIGNS[kind], one_line(str(below(event, "text")), _LONG))


def _listed(row: Mapping[str, Any], key: str) -> list[Any]:
    value = row.get(key)
    return value if isinstance(value, list) else []
