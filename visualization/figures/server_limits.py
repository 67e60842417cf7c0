"""Limits on what the server reported, ``server.CPUUtilization<70%`` -> lines in the pictures of its metrics. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.limit_checks import bound_of, statistic_of
from visualization.figures.bars import by_title, factor_of
from visualization.figures.figures import Bars, Curves, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.plan.server_limit import ServerLimit
    from visualization.figures.runs import Run

Levels = dict[str, tuple[Level, ...]]
"""By the name of a metric with its statistic, as its charts are called: ``CPUUtilization, Average``."""


def server_levels(runs: Sequence[Run]) -> Levels:
    """The limits of all runs, each once, in the unit that the metric is shown in."""
    found: dict[str, dict[Level, None]] = {}
    for run in runs:
        limits = () if run.plan is None else run.plan.server_limits
        for title, row in by_title(run).items() if limits else ():
            for limit in (each for each in limits if each.name == row.name):
                for statistic, value in _bound(limit, row):
                    found.setdefault(f"{title}, {statistic}", {})[Level(value, limit.expression)] = None
    return {name: tuple(levels) for name, levels in found.items()}


def with_server_levels(chart: Bars | Curves, levels: Levels) -> Bars | Curves:
    """The same with the lines of its metric."""
    if isinstance(chart, Bars):
        return replace(chart, levels=levels.get(chart.title, ()))
    return replace(chart, levels=levels.get(chart.y.title, ()))


def _bound(limit: ServerLimit, row: ServerMetric) -> Iterator[tuple[str, float]]:
    """The statistic that it is on, and its bound as it is shown; nothing where that is not known."""
    bound = bound_of(limit, row)
    if bound is not None and row.statistics:
        yield statistic_of(limit, row), bound * factor_of(row)
