"""A run second by second: its load, its times, its errors, its client and its server, on one axis. Pure."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from itertools import pairwise, zip_longest
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.facts.scaling import scalings
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import NS
from visualization.figures.figures import Axis
from visualization.figures.folding import by_step, cpu_points, folded, neighbours
from visualization.run_page.figure_types import (
    SECONDS,
    Figure,
    Trace,
    kind_of,
    scale_of,
    scaled,
    time_limits,
    time_unit,
    whole_wave,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.wave.files.client_table import Table
    from visualization.figures.figures import Points
    from visualization.run_page.figure_types import Colour

_WHOLE = ("scheduled", "sent", "ok", "repeated", "good", "tokens_out", "in_flight")
"""The columns that hold for a whole second, and are not shown for the last one, which is none."""

_TARGET = "target"  # a closed loop has none
_Column = tuple[str, str, "Colour"]


class _Picture(NamedTuple):
    """A picture of columns of the timeline, each with its name and colour; ``metrics``: the times that it is of."""

    title: str
    unit: str
    columns: tuple[_Column, ...]
    metrics: tuple[str, ...] = ()


_PICTURES = (
    _Picture("Rate", "/s", ((_TARGET, "scheduled", "soft"), ("sent", "sent", 0), ("completed", "ok", 1))),
    _Picture(
        "Latency and response time",
        "",
        (
            ("latency p50", "latency_p50_s", 0),
            ("latency p99", "latency_p99_s", 1),
            ("response time p99", "response_time_p99_s", 2),
        ),
        ("latency", "response_time"),
    ),
    _Picture("TTFT", "", (("TTFT p99", "ttft_p99_s", 0),), ("ttft",)),
    _Picture("In flight", "requests", (("in flight", "in_flight", 0),)),
    _Picture("Output tokens", "/s", (("output tokens", "tokens_out", 2),)),
    _Picture("Requests that met the goodput's limits", "/s", (("good", "good", 2),)),
    _Picture("Repeats", "/s", (("repeats", "repeated", 3),)),
    _Picture("Schedule lag", "", (("lag p99", "lag_p99_s", 3),), ("lag",)),
)
MOST_SECONDS = 1_000_000
_MOST_SERVER, _MOST_INSTANCES = 24, 4
_LONG = 80


def by_second(facts: WaveFacts) -> Table:
    """The columns of ``timeline.csv`` by name; None where a cell is empty."""
    columns: Table = {}
    for row in csv.DictReader(io.StringIO(timeline(facts))):
        for name, text in row.items():
            if name != "stage":
                columns.setdefault(name, []).append(float(text) if text else None)
    return columns


def wave_figures(facts: WaveFacts, summary: Summary) -> Iterator[Figure]:
    """The wave's own: rates, times with their limits, in flight, tokens; what it did not have is left out."""
    if is_too_long(summary):
        return
    table, bands = by_second(facts), stage_bands(summary)
    for picture in _PICTURES:
        figure = _timed(picture, table, facts, summary) if picture.metrics else _count_figure(picture, table, summary)
        yield replace(figure, bands=bands, span=whole_wave(summary))


def is_too_long(summary: Summary) -> bool:
    """Tells whether a wave has more seconds than are looked at one by one, with nobody waiting for long."""
    return whole_wave(summary)[1] > MOST_SECONDS


def stage_bands(summary: Summary) -> tuple[tuple[str, float, float], ...]:
    """The stages of a wave as stretches of its time."""
    return tuple((_stage(row.name), row.start_s, row.end_s) for row in summary.stages)


def _stage(name: str) -> str:
    """The name of a stage; one without a name has a number."""
    return f"stage {name}" if name.isdecimal() else one_line(name, _LONG)


def _count_figure(picture: _Picture, table: Table, summary: Summary) -> Figure:
    """Counts of each second; those of what never happened are left out."""
    last_s = whole_wave(summary)[1]
    columns = [each for each in picture.columns if each[0] != _TARGET or summary.rates.target is not None]
    found = [(name, _column(table, column, last_s), colour) for name, column, colour in columns]
    traces = tuple(
        Trace(name, points, colour, "dashed" if name == _TARGET else "line")
        for name, points, colour in found
        if any(y for _, y in points)
    )
    return Figure(picture.title, SECONDS, Axis(picture.title, picture.unit), traces)


def _column(table: Table, column: str, last_s: float) -> Points:
    """A column at most so many points: counts as their fmean, p99 as the worst, others as the median."""
    values = table.get(column, [])[: max(int(last_s), 1) if column in _WHOLE else None]
    fold = max if "p99" in column else median if "p50" in column else fmean
    return by_step(values, last_s, fold)


def _timed(picture: _Picture, table: Table, facts: WaveFacts, summary: Summary) -> Figure:
    """Percentiles of each second with the limits on them; the closed loop has no response time."""
    closed = summary.response_time is None
    measured = [each for each in picture.columns if not (closed and each[1].startswith("response"))]
    named = picture.title if len(measured) == len(picture.columns) else picture.title.partition(" and")[0]
    traces = [
        Trace(name, _column(table, column, whole_wave(summary)[1]), colour, kind_of(column))
        for name, column, colour in measured
    ]
    values = [value for trace in traces for value in trace.values]
    unit, factor = time_unit(values)
    drawn = tuple(replace(trace, points=scaled(trace.points, factor)) for trace in traces if trace.values)
    limits = time_limits(facts, summary, *picture.metrics)
    levels = tuple(replace(level, value=level.value * factor, at=None) for _, level in limits)
    return Figure(named, SECONDS, Axis(named, unit, scale_of(values)), drawn, levels)


def instance_figures(facts: WaveFacts, summary: Summary) -> Iterator[Figure]:
    """The server's instances where their number changed: those that served, and those that were asked for."""
    bands, span = stage_bands(summary), whole_wave(summary)
    for scaling in [each for each in scalings(facts) if not each.is_steady][:_MOST_INSTANCES]:
        steps = scaling.steps[:: neighbours(scaling.steps)]
        served = _steps([(step.at, step.current) for step in steps], span[1])
        asked = _steps([(step.at, step.desired) for step in steps], span[1])
        traces = (Trace("serve", served, 2), Trace("asked for", asked, "soft", "dashed"))
        title = one_line(f"Instances of {scaling.followed.of}", _LONG)
        drawn = tuple(trace for trace in traces if trace.values)
        yield Figure(title, SECONDS, Axis("Instances", ""), drawn, bands=bands, span=span)


def _steps(points: Sequence[tuple[float, float | None]], last_s: float) -> Points:
    """Counts that hold until the next one."""
    ends = [*(at for at, _ in points[1:]), last_s]
    return tuple(pair for (at, y), end in zip(points, ends, strict=True) for pair in ((at, y), (max(at, end), y)))


def client_figures(client: Mapping[str, Table], cores: int, summary: Summary) -> Iterator[Figure]:
    """The CPU of the client's host and of each worker, from ``client.csv``."""
    host = [Trace("host", cpu_points(client["host"], 1 / cores), 0)] if "host" in client else []
    workers = [
        Trace(process.replace("_", " "), cpu_points(table, 1), number % 8)
        for number, (process, table) in enumerate(client.items())
        if process.startswith("worker")
    ]
    for title, traces in (("CPU of the client's host", host), ("CPU of each worker, of one core", workers)):
        yield Figure(title, SECONDS, Axis("CPU", "%"), tuple(traces), span=whole_wave(summary))


def server_figures(facts: WaveFacts, summary: Summary) -> Iterator[Figure]:
    """The server's metrics that were stored over time, each by the statistic that its series has."""
    start_s = facts.window.start_unix_ns / NS
    for metric in [each for each in facts.server_metrics or () if each.asked and each.series][:_MOST_SERVER]:
        unit, factor = _UNITS.get((metric.unit or "").lower(), ("", 1.0))
        points = folded([(at - start_s, value * factor) for at, value in metric.series], fmean)
        if metric.stream == "cloudwatch":
            points = tuple(_held(points, (metric.end or 0.0) - (metric.start or 0.0)))
        statistic = metric.series_of or "value"
        traces = (Trace(one_line(statistic), points, 0),)
        yield Figure(_title(metric), SECONDS, Axis(metric.name, unit), traces, span=whole_wave(summary))


def _title(metric: ServerMetric) -> str:
    where = ", ".join(metric.dimensions.values())
    text = f"{metric.name}, {metric.series_of}" if metric.series_of else metric.name
    return one_line(f"{text} ({where})" if where else text, _LONG)


_UNITS = {
    "percent": ("%", 1.0),
    "microseconds": ("ms", 1e-3),
    "milliseconds": ("ms", 1.0),
    "seconds": ("s", 1.0),
    "bytes": ("B", 1.0),
    "count/second": ("/s", 1.0),
    "bytes/second": ("B/s", 1.0),
}


def _held(points: Sequence[tuple[float, float | None]], alone: float) -> Iterator[tuple[float, float | None]]:
    """Values that hold from their place to the next one; ``alone``: how long the only one does."""
    starts = [x for x, _ in points]
    length = min((after - before for before, after in pairwise(starts)), default=alone)
    for (x, y), following in zip_longest(points, starts[1:]):
        yield x, y
        yield x + length if following is None else min(following, x + length), y
        if following is not None and following > x + 1.5 * length:
            yield x + length, None
