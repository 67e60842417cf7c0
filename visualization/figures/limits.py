"""The limits of runs (``--slo``) -> lines in the pictures of what they are on. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log10
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop
from visualization.figures.figures import STATISTICS, Bars, Curves, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.plan.slo import Slo
    from visualization.figures.runs import Run

TITLES = {
    "latency": "Latency", "response_time": "Response time", "ttft": "TTFT", "itl": "ITL", "lag": "Schedule lag",
    "success": "Success",
}  # fmt: skip
"""The metrics whose limits are drawn beside those of the user's own, and the title of their charts."""

_CHOICES = {stat.replace("_", "."): choice for choice, stat in STATISTICS.items()}


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that runs have: ``metric`` is a key of ``TITLES``, or one of the user's own.

    ``runs``: the numbers of those runs. ``value``: in the unit of the charts, ms or %, of the user's own without one.
    """

    slo: Slo
    metric: str
    value: float
    runs: tuple[int, ...]
    text: str

    @property
    def choice(self) -> str:
        """The statistic it is on, as the chooser calls it; "" where it is no choice."""
        return _CHOICES.get(self.slo.stat, "")


def limits_of_runs(runs: Sequence[Run]) -> tuple[Limit, ...]:
    """The limits on whole waves that can be drawn, in the order in which they are given, each once."""
    found: dict[tuple[str, str], list[tuple[int, Slo]]] = {}
    for number, run in enumerate(runs):
        for slo in slos_of(run):
            found.setdefault((metric_of(slo, run), slo.expression), []).append((number, slo))
    return tuple(
        _limit(metric, given, runs)
        for (metric, _), given in found.items()
        if metric in TITLES or given[0][1].is_on_user_metric
    )


def slos_of(run: Run) -> Iterator[Slo]:
    """Those on whole waves and their requests."""
    for slo in () if run.plan is None else run.plan.slos:
        if not slo.stage and not slo.is_on_sessions:
            yield slo


def metric_of(slo: Slo, run: Run) -> str:
    """The metric that a limit is on in a run: a bare percentile is of response time, in the closed loop of latency."""
    closed = run.plan is not None and isinstance(run.plan.load, ClosedLoop)
    return ("latency" if closed else "response_time") if slo.metric == "default" else slo.metric


def _limit(metric: str, given: Sequence[tuple[int, Slo]], runs: Sequence[Run]) -> Limit:
    slo, numbers = given[0][1], tuple(number for number, _ in given)
    waves = sum(run.has_wave for run in runs)
    whose = runs[numbers[0]].label if len(numbers) == 1 else f"{len(numbers)} of {waves} runs"
    text = slo.expression if len(numbers) >= waves else f"{slo.expression} ({whose})"
    factor = 1 if slo.is_on_user_metric else 100 if metric == "success" else 1e3
    return Limit(slo, metric, slo.limit * factor, numbers, text)


def first_statistic(limits: Sequence[Limit], otherwise: str) -> str:
    """The statistic to show first: what a limit on a time names, or else one on a metric of the user's own."""
    by_kind = sorted(limits, key=lambda limit: limit.slo.is_on_user_metric)
    return next((limit.choice for limit in by_kind if limit.choice), otherwise)


def with_levels(chart: Bars | Curves, limits: Sequence[Limit]) -> Bars | Curves:
    """The same with a line for each limit that is on what it shows."""
    if isinstance(chart, Bars):
        on = _on(chart.title, limits) if chart.source == "locust" else ()
        return replace(chart, levels=tuple(_on_bars(chart, on)))
    on = _on(chart.y.title, limits) if chart.y.unit == "ms" else ()
    return replace(chart, levels=tuple(_on_curves(chart, on)))


def _on(title: str, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    return tuple(limit for limit in limits if TITLES.get(limit.metric, limit.metric) == title)


def _on_bars(bars: Bars, limits: Sequence[Limit]) -> Iterator[Level]:
    for limit in limits:
        if limit.metric == "success" or limit.choice in bars.statistics:
            yield Level(limit.value, limit.text, "" if limit.metric == "success" else limit.choice)


def _on_curves(curves: Curves, limits: Sequence[Limit]) -> Iterator[Level]:
    """Of lines by statistic those of theirs; in a distribution to their percentile; over time on the line's own."""
    named = {line.name for line in curves.lines} | {line.statistic for line in curves.lines}
    for limit in limits:
        percent = _percent(limit.slo.stat)
        if curves.x.scale == "nines":
            if percent is not None:
                yield Level(limit.value, limit.text, until=-log10(1 - percent / 100))
        elif any(line.statistic for line in curves.lines):
            if limit.choice in named:
                yield Level(limit.value, limit.text, limit.choice)
        elif limit.slo.stat in named:
            yield Level(limit.value, limit.text)


def _percent(stat: str) -> float | None:
    """99 of p99; None of a mean or an extreme."""
    return float(stat[1:]) if stat[1:2].isdigit() else None
