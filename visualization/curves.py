"""Runs -> the pictures that bars cannot show: capacity, distribution, the wave's time. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, zip_longest
from statistics import median
from typing import TYPE_CHECKING, Any

from inference_benchmarker.text import one_line
from visualization.bars import by_title, factor_of, server_bars, unit_of
from visualization.figures import STATISTICS, Axis, Curves, Line, Points
from visualization.instances import instances_strip
from visualization.runs import Run, below, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MOST_POINTS = 600
_LONGEST_NAME = 40
_WIDE = 20.0  # from where the largest is so many times the smallest, an axis is logarithmic


def capacity(runs: Sequence[Run]) -> Iterator[Curves]:
    """Times, failures and the server's metrics against the completed rate: a point a run; nothing for a single load.

    A wave whose rate changes is no point: its times are those of its peaks, its rate is the mean.
    """
    rate = Axis("Completed rate", "/s")
    completed, targets = ([_of_one_rate(run, name) for run in runs] for name in ("completed", "target"))
    loads = {_load(run) for run, found in zip(runs, completed, strict=True) if found is not None}
    if len(loads) < 2:
        return
    for title, key in (("Latency", "latency"), ("Response time", "response_time"), ("TTFT", "ttft")):
        lines = [
            line
            for choice, name in STATISTICS.items()
            for line in _across(runs, completed, [_scaled(run.number(key, name), 1e3) for run in runs], choice)
        ]
        yield from _drawn(f"{title} against rate", rate, Axis(title, "ms"), lines)
    yield from _drawn(
        "Completed against target rate",
        Axis("Target rate", "/s"),
        rate,
        [*_ideal(targets), *_across(runs, targets, completed)],
    )
    failed = [_scaled(run.number("success_rate"), -100, 100) for run in runs]
    yield from _drawn("Not successful", rate, Axis("Not successful", "%"), _across(runs, completed, failed))
    for bars in server_bars(runs):
        values = [bar.value for bar in bars.statistics[""]]
        yield from _drawn(bars.title, rate, Axis(bars.title, bars.unit), _across(runs, completed, values))


def _of_one_rate(run: Run, name: str) -> float | None:
    """A rate of a run; None where what was offered changed by plan."""
    return None if below(run.plan, "load", "replay") or _changes(run) else run.number("rates", name)


def _changes(run: Run) -> bool:
    stages = below(run.plan, "load", "stages")
    rows = stages if isinstance(stages, list) else []
    return len({str(below(row, name)) for row in rows for name in ("from_rps", "to_rps")}) > 1


def _ideal(targets: Sequence[float | None]) -> Iterator[Line]:
    """The line on which completed equals target."""
    most = max((target for target in targets if target is not None), default=None)
    if most is not None:
        yield Line(None, "all of it", ((0.0, 0.0), (most, most)), dashed=True)


def _across(
    runs: Sequence[Run], xs: Sequence[float | None], ys: Sequence[float | None], statistic: str = ""
) -> Iterator[Line]:
    """A line for each endpoint through the points of its runs, in the order of the load that was offered."""
    targets: dict[Any, list[int]] = {}
    for index, run in enumerate(runs):
        if xs[index] is not None and ys[index] is not None:
            targets.setdefault(_target(run), []).append(index)
    for members in targets.values():
        order = sorted(members, key=lambda index: (_offered(runs[index]), xs[index]))
        points = tuple((float(xs[index] or 0), ys[index]) for index in order)
        knee = _knee(_one_a_load([_offered(runs[index]) for index in order], points)) if statistic else None
        yield Line(None, "", points, statistic=statistic, over=tuple(order), knee=knee)


def _one_a_load(loads: Sequence[float], points: Points) -> Points:
    """Of the runs of one load the one with the median time: sent again, it says no more of where the curve bends."""
    by_load: dict[float, list[tuple[float, float | None]]] = {}
    for load, point in zip(loads, points, strict=True):
        by_load.setdefault(load, []).append(point)
    return tuple(sorted(found, key=lambda point: point[1] or 0)[(len(found) - 1) // 2] for found in by_load.values())


def _target(run: Run) -> tuple[str, ...]:
    """Endpoint and load model: runs of the same make one capacity curve. Rates and requests in flight have no order."""
    what, how = below(run.facts, "environment", "file_sha256"), below(run.plan, "load", "kind")
    return str(what), str(how), *(str(run.plan.get(key)) for key in ("endpoint_name", "url"))


def _load(run: Run) -> tuple[str, float]:
    """The load that was offered; a rate and as many requests in flight are two loads."""
    return str(below(run.plan, "load", "kind")), _offered(run)


def _offered(run: Run) -> float:
    load = run.plan.get("load")
    given = (load.get("rate") or load.get("concurrency")) if isinstance(load, dict) else None
    try:
        return float(given or 0)
    except (TypeError, ValueError):  # a damaged plan
        return 0.0


def _knee(points: Points) -> tuple[float, float] | None:
    """The point where the curve turns up: farthest below the chord from the first to the slowest one, both axes 0 to 1.

    (Satopää and others, "Finding a 'kneedle' in a haystack", 2011.) None for fewer than four points, a time that
    never doubles, or a curve without a bend.
    """
    ends = [(x, y) for x, y in points if y is not None]
    slowest = max(range(len(ends)), key=lambda index: ends[index][1], default=0)
    curve = ends[: slowest + 1]
    if len(curve) < 4 or curve[-1][1] < 2 * curve[0][1]:
        return None
    (x0, y0), (x1, y1) = curve[0], curve[-1]
    width = max(x for x, _ in curve) - x0 or 1.0
    below = [(x - x0) / width - (y - y0) / (y1 - y0) for x, y in curve]
    bend = max(range(len(curve)), key=below.__getitem__)
    return curve[bend] if below[bend] > 0.2 and x1 > x0 else None


def distributions(runs: Sequence[Run]) -> Iterator[Curves]:
    """The distribution of each time, to p99.99 where there are so many requests."""
    for title, key in (("Latency", "latency"), ("Response time", "response_time"), ("TTFT", "ttft"), ("ITL", "itl")):
        lines = [
            Line(index, "", tuple((x, _scaled(y, 1e3)) for x, y in run.tails[key]))
            for index, run in enumerate(runs)
            if key in run.tails
        ]
        yield from _drawn(title, Axis("Percentile", "", "nines"), Axis(title, "ms"), lines)


def over_time(runs: Sequence[Run]) -> Iterator[Curves]:
    """Load, times, client and server by second of the wave, with the stages where all waves have the same.

    Below those of the wave is a strip of the server's instances, where they were followed.
    """
    seconds, bands = Axis("Time", "s"), _stages(runs)
    strip = instances_strip(runs)
    for curves in (
        *(replace(each, strip=strip) for each in _wave_over_time(runs, seconds)),
        *_client_over_time(runs, seconds),
        *_server_over_time(runs, seconds),
    ):
        yield replace(curves, bands=bands)


def _stages(runs: Sequence[Run]) -> tuple[tuple[str, float, float], ...]:
    """The stages of the waves; none where they differ, or a summary is damaged."""
    found = {tuple(_stages_of(run)) for run in runs if run.has_wave}
    return found.pop() if len(found) == 1 else ()


def _stages_of(run: Run) -> Iterator[tuple[str, float, float]]:
    rows = below(run.facts, "stages")
    for row in rows if isinstance(rows, list) else ():
        start, end = number(row, "start_s"), number(row, "end_s")
        if start is not None and end is not None:
            yield one_line(str(row.get("name")), _LONGEST_NAME), start, end


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
            Line(index, name, _by_second(run, column, factor), dashed=number_ > 0)
            for index, run in enumerate(runs)
            for number_, (name, column) in enumerate(named)
        ]
        rare = {"Failed requests": lines, "Arrivals and repeats": lines[1::2]}.get(title)
        if rare is None or any(y for line in rare for _, y in line.points):
            yield from _drawn(title, seconds, Axis(title, unit), lines)


def _by_second(run: Run, column: str, factor: float) -> Points:
    """A column of the timeline, at most so many points: counts as their mean, p99 as the worst, others as the median.

    What holds for a whole second ends with the last one of load or answers; evenly paced, the last answer of a wave
    of 8 s comes before they are over.
    """
    if column.startswith("response_time") and run.facts.get("response_time") is None:  # the closed loop has none
        return ()
    values = run.timeline.get(column, [])
    ends = [end for name in ("duration_s", "planned_s") if (end := run.number("window", name)) is not None]
    if ends and column in ("ok", "sent", "scheduled", "repeated", "in_flight"):
        values = values[: max(int(max(ends)), 1)]
    fold: Callable[[list[float]], float] = (
        max if "p99" in column else median if "p50" in column else lambda known: sum(known) / len(known)
    )
    return _folded([(float(second), _scaled(value, factor)) for second, value in enumerate(values)], fold)


def _folded(points: Sequence[tuple[float, float | None]], fold: Callable[[list[float]], float]) -> Points:
    size = -(-len(points) // _MOST_POINTS) or 1
    groups = [points[first : first + size] for first in range(0, len(points), size)]
    known = [(group[0][0], [y for _, y in group if y is not None]) for group in groups]
    return tuple((x, fold(values) if values else None) for x, values in known)


def _client_over_time(runs: Sequence[Run], seconds: Axis) -> Iterator[Curves]:
    cores = [run.number("client", "host", "cores") or 1 for run in runs]
    host = [
        Line(index, "host", _cpu(run.client["host"], 1 / cores[index]))
        for index, run in enumerate(runs)
        if "host" in run.client
    ]
    workers = [
        Line(index, process.replace("_", " "), _cpu(table, 1), dashed=process != "worker_0")
        for index, run in enumerate(runs)
        for process, table in run.client.items()
        if process.startswith("worker")
    ]
    yield from _drawn("CPU of the client's host", seconds, Axis("CPU, all cores", "%"), host)
    yield from _drawn("CPU of each worker", seconds, Axis("CPU, of one core", "%"), workers)


def _cpu(table: Mapping[str, Sequence[float | None]], factor: float) -> Points:
    pairs = zip(table["second"], table["cpu_percent"], strict=True)
    return _folded([(x, _scaled(y, factor)) for x, y in pairs if x is not None], lambda known: sum(known) / len(known))


def _server_over_time(runs: Sequence[Run], seconds: Axis) -> Iterator[Curves]:
    by_run = [by_title(run) for run in runs]
    for title in dict.fromkeys(title for rows in by_run for title in rows):
        rows = [row.get(title, {}) for row in by_run]
        lines = [
            Line(index, str(row.get("series_of") or ""), _since(runs[index], row), stepped=_in_buckets(row))
            for index, row in enumerate(rows)
            if row.get("series")
        ]
        statistic = next((line.name for line in lines if line.name), "")
        axis = Axis(f"{title}, {statistic}" if statistic else title, unit_of(rows))
        yield from _drawn(title, seconds, axis, lines)


def _since(run: Run, row: Mapping[str, Any]) -> Points:
    """A server's series on the wave's clock: samples, or buckets that hold to their end."""
    start = (run.number("window", "start_unix_ns") or 0) / 1e9
    factor = factor_of(row)
    points: list[tuple[float, float | None]] = [(at - start, value * factor) for at, value in row["series"]]
    points = list(_folded(points, lambda known: sum(known) / len(known)))
    return tuple(_held(points, (row.get("end") or 0) - (row.get("start") or 0))) if _in_buckets(row) else tuple(points)


def _in_buckets(row: Mapping[str, Any]) -> bool:
    return row.get("stream") == "cloudwatch"


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


def _drawn(title: str, x: Axis, y: Axis, lines: Iterator[Line] | Sequence[Line]) -> Iterator[Curves]:
    """The picture, if there is a point to draw."""
    kept = tuple(line for line in lines if any(value is not None for _, value in line.points))
    if not any(line.run is not None or line.over for line in kept):
        return
    values = [value for line in kept for _, value in line.points if value is not None]
    wide = y.unit == "ms" and min(values) > 0 and max(values) > _WIDE * min(values)
    yield Curves(title, x, Axis(y.title, y.unit, "log") if wide else y, kept)


def _scaled(value: float | None, factor: float, plus: float = 0) -> float | None:
    return None if value is None else value * factor + plus
