"""Runs -> pictures over the waves' time: load, times, client, server. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, zip_longest
from statistics import fmean, median
from typing import TYPE_CHECKING

from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import NS
from visualization.figures.bars import by_title, factor_of, unit_of
from visualization.figures.curves import drawn, scaled
from visualization.figures.figures import Axis, Curves, Line, Points
from visualization.figures.folding import MOST_POINTS, by_step, cpu_points, folded
from visualization.figures.instances import instances_strip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from visualization.figures.runs import Run

CLIENT_TITLES = ("Schedule lag", "CPU of the client's host", "CPU of each worker")
"""The pictures of the client."""

_IN_ALL = 2_400  # points of the lines of all runs in one picture
_LONGEST_NAME = 40


def over_time(runs: Sequence[Run]) -> Iterator[Curves]:
    """Load, times and client by second of the wave, with the stages where all waves have the same.

    Below those of the wave is a strip of the server's instances, where they were followed.
    """
    seconds, bands = Axis("Time", "s"), _stages(runs)
    strip = instances_strip(runs)
    for curves in (
        *(replace(each, strip=strip) for each in _wave_over_time(runs, seconds)),
        *_client_over_time(runs, seconds),
    ):
        yield replace(curves, bands=bands, apart=True, until=_last(runs))


def server_over_time(runs: Sequence[Run]) -> Iterator[Curves]:
    """The server's metrics on the waves' clocks, where they are not always 0."""
    bands = _stages(runs)
    for curves in _server_over_time(runs, Axis("Time", "s")):
        if any(y for line in curves.lines for _, y in line.points):
            yield replace(curves, bands=bands, apart=True, until=_last(runs))


def _last(runs: Sequence[Run]) -> float | None:
    """The second in which the longest wave's load or last answer ends."""
    return max((end for run in runs for end in _ends(run)), default=None)


def _step(timeline: Mapping[str, Sequence[float | None]]) -> int:
    """The seconds that a row of it stands for."""
    first, second = [*(timeline.get("second") or ()), None, None][:2]
    return max(int(second - first), 1) if first is not None and second is not None else 1


def _ends(run: Run) -> list[float]:
    """The seconds in which its last answer and its load end."""
    window = run.window
    return [] if window is None else [end for end in (window.duration_s, window.planned_s) if end is not None]


def _stages(runs: Sequence[Run]) -> tuple[tuple[str, float, float], ...]:
    """The stages of the waves; none where they differ, or a summary is damaged."""
    found = {tuple(_stages_of(run)) for run in runs if run.has_wave}
    return found.pop() if len(found) == 1 else ()


def _stages_of(run: Run) -> Iterator[tuple[str, float, float]]:
    for row in (run.summary and run.summary.stages) or ():
        name = one_line(row.name, _LONGEST_NAME)
        yield (f"stage {name}" if name.isdecimal() else name), row.start_s, row.end_s


def _wave_over_time(runs: Sequence[Run], seconds: Axis) -> Iterator[Curves]:
    columns: tuple[tuple[str, str, float, tuple[tuple[str, str], ...]], ...] = (
        ("Rate", "/s", 1, (("completed", "ok"), ("sent", "sent"))),
        ("Arrivals and repeats", "/s", 1, (("arrivals", "scheduled"), ("repeats", "repeated"))),
        ("Latency", "ms", 1e3, (("p50", "latency_p50_s"), ("p99", "latency_p99_s"))),
        ("Response time", "ms", 1e3, (("p99", "response_time_p99_s"),)),
        ("Failed requests", "/s", 1, (("", "failed"),)),
        ("In flight", "", 1, (("", "in_flight"),)),
        ("Schedule lag", "ms", 1e3, (("p99", "lag_p99_s"),)),
    )
    for title, unit, factor, named in columns:
        lines = [
            Line(index, name, _by_second(run, column, factor, _most(runs)), dashed=number_ > 0)
            for index, run in enumerate(runs)
            for number_, (name, column) in enumerate(named)
        ]
        rare = {"Failed requests": lines, "Arrivals and repeats": lines[1::2]}.get(title)
        if rare is None or any(y for line in rare for _, y in line.points):
            yield from drawn(title, seconds, Axis(title, unit), lines)


def _most(runs: Sequence[Run]) -> int:
    """The most points of a line: the strips of many runs are low, and a page is to open at once."""
    return min(MOST_POINTS, _IN_ALL // len(runs))


def _by_second(run: Run, column: str, factor: float, most: int) -> Points:
    """A column of the timeline, at most so many points: counts as their mean, p99 as the worst, others as the median.

    What holds for a whole second ends with the last one of load or answers; evenly paced, the last answer of a wave
    of 8 s comes before they are over.
    """
    if column.startswith("response_time") and run.times("response_time") is None:  # the closed loop has none
        return ()
    values = run.timeline.get(column, [])
    ends, step = _ends(run), _step(run.timeline)
    if ends and column in ("ok", "sent", "scheduled", "repeated", "in_flight"):
        values = values[: max(int(max(ends)) // step, 1)]
    fold: Callable[[list[float]], float] = max if "p99" in column else median if "p50" in column else fmean
    last = max(ends, default=float(len(values) * step))
    return by_step([scaled(value, factor) for value in values], last, fold, most, step)


def _client_over_time(runs: Sequence[Run], seconds: Axis) -> Iterator[Curves]:
    hosts = [None if run.summary is None else run.summary.client.host for run in runs]
    cores = [1 if host is None else host.cores for host in hosts]
    lines = [
        Line(index, "host", cpu_points(run.client["host"], 1 / cores[index], _most(runs)))
        for index, run in enumerate(runs)
        if "host" in run.client
    ]
    workers = [
        Line(index, process.replace("_", " "), cpu_points(table, 1, _most(runs)), dashed=process != "worker_0")
        for index, run in enumerate(runs)
        for process, table in run.client.items()
        if process.startswith("worker")
    ]
    yield from drawn("CPU of the client's host", seconds, Axis("CPU, all cores", "%"), lines)
    yield from drawn("CPU of each worker", seconds, Axis("CPU, of one core", "%"), workers)


def _server_over_time(runs: Sequence[Run], seconds: Axis) -> Iterator[Curves]:
    by_run = [by_title(run) for run in runs]
    for title in dict.fromkeys(title for rows in by_run for title in rows):
        rows = [row.get(title) for row in by_run]
        lines = [
            Line(index, row.series_of or "", _since(runs[index], row, _most(runs)), stepped=_in_buckets(row))
            for index, row in enumerate(rows)
            if row is not None and row.series
        ]
        statistic = next((line.name for line in lines if line.name), "")
        axis = Axis(f"{title}, {statistic}" if statistic else title, unit_of(rows))
        yield from drawn(title, seconds, axis, lines)


def _since(run: Run, row: ServerMetric, most: int) -> Points:
    """A server's series on the wave's clock: samples, or buckets that hold to their end."""
    start = 0.0 if run.window is None else run.window.start_unix_ns / NS
    factor = factor_of(row)
    points: list[tuple[float, float | None]] = [(at - start, value * factor) for at, value in row.series]
    points = list(folded(points, fmean, most))
    return tuple(_held(points, (row.end or 0) - (row.start or 0))) if _in_buckets(row) else tuple(points)


def _in_buckets(row: ServerMetric) -> bool:
    return row.stream == "cloudwatch"


def _held(points: Sequence[tuple[float, float | None]], alone: float) -> Iterator[tuple[float, float | None]]:
    """Bucket starts, with an end where no other bucket follows; ``alone``: how long the only one is."""
    starts = [x for x, _ in points]
    length = min((after - before for before, after in pairwise(starts)), default=alone)
    for (x, y), following in zip_longest(points, starts[1:]):
        yield x, y
        if following is None:
            yield x + length, y
        elif following > x + 1.5 * length:
            yield x + length, None
