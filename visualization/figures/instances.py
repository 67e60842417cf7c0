"""Runs -> the strip below their time: the server's instances, those that serve and those that were asked for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.text import one_line
from visualization.figures.figures import SIGNS, Line, Mark, Strip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.report.instance_numbers import FollowedInstances
    from visualization.figures.runs import Run

TITLE, SERVE, ASKED_FOR = "Instances", "serve", "asked for"
_MOST_STEPS, _MOST_MARKS, _LONG = 2_000, 100, 200


def instances_strip(runs: Sequence[Run]) -> Strip | None:
    """The strip of all runs; None where no number of instances changed, and no alarm said that one should."""
    lines = [line for index, run in enumerate(runs) for line in _lines(index, run)]
    marks = [mark for index, run in enumerate(runs) for mark in _marks(index, run)]
    changed = any(len({count for _, count in line.points}) > 1 for line in lines)
    known = any(mark.sign != SIGNS["load"] for mark in marks)
    return Strip(TITLE, tuple(lines), tuple(marks)) if lines and (changed or known) else None


def _followed(run: Run) -> Sequence[FollowedInstances]:
    return () if run.summary is None or run.summary.instances is None else run.summary.instances.followed


def _lines(index: int, run: Run) -> Iterator[Line]:
    for row in _followed(run):
        for name, key in ((SERVE, "current"), (ASKED_FOR, "desired")):
            counts = ((step.at_s, getattr(step, key)) for step in row.steps[:_MOST_STEPS])
            points = [(at, count) for at, count in counts if count is not None]
            if points and run.window is not None:
                end = max(run.window.duration_s, points[-1][0])
                held = (*points, (end, points[-1][1]))
                yield Line(index, name, held, dashed=key == "desired", stepped=True)


def _marks(index: int, run: Run) -> Iterator[Mark]:
    for row in _followed(run):
        for event in row.events[:_MOST_MARKS]:
            yield Mark(index, event.at_s, SIGNS[event.kind], one_line(event.text, _LONG))
