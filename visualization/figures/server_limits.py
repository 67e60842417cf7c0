"""Limits on what the server told, ``server.CPUUtilization<70%`` -> lines in the pictures of its metrics. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.verdict.server.limits_kept import bound_of, statistic_of
from visualization.figures.bars import by_title, factor_of
from visualization.figures.figures import Bars, Curves, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from visualization.figures.runs import Run

Levels = dict[str, tuple[Level, ...]]
"""By the name of a metric with its statistic, as its charts are called: ``CPUUtilization, Average``."""


def server_levels(runs: Sequence[Run]) -> Levels:
    """The limits of all runs, each once, in the unit that the metric is shown in."""
    found: dict[str, dict[Level, None]] = {}
    for run in runs:
        limits = list(_limits_of(run))
        for title, row in by_title(run).items() if limits else ():
            for limit in (each for each in limits if each.name == row["name"]):
                for statistic, value in _bound(limit, row):
                    found.setdefault(f"{title}, {statistic}", {})[Level(value, limit.expression)] = None
    return {name: tuple(levels) for name, levels in found.items()}


def with_server_levels(chart: Bars | Curves, levels: Levels) -> Bars | Curves:
    """The same with the lines of its metric."""
    if isinstance(chart, Bars):
        return replace(chart, levels=levels.get(chart.title, ()))
    return replace(chart, levels=levels.get(chart.y.title, ()))


def _limits_of(run: Run) -> Iterator[ServerLimit]:
    """Those of a plan that anybody may have written."""
    given = run.plan.get("slos")
    for text in given if isinstance(given, list) else ():
        try:
            yield ServerLimit.parse(str(text))
        except BenchmarkError:  # one on the wave
            continue


def _bound(limit: ServerLimit, row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The statistic that it is on, and its bound as it is shown; nothing where that is not known."""
    try:
        metric = decoded(row, ServerMetric)
        bound = bound_of(limit, metric)
    except (KeyError, TypeError, ValueError):  # a row that anybody may have written
        return
    if bound is not None and metric.statistics:
        yield statistic_of(limit, metric), bound * factor_of(row)
