"""The statistics of one scraped series over the window, what they cover, and its course. Pure.

A gauge's values are those of the samples inside the window. A counter's gain, and a histogram's, is over the rounds
that cover the window, without what the warm-up gained. A counter's rate is between the first and the last sample
inside, or that of its gain where these lie together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from server_capacity.prometheus.block import percent_of
from server_capacity.prometheus.deltas import Buckets, beyond_last_bound, bucket_increase, increase, quantile
from server_capacity.prometheus.exposition import Labels, parse_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.prometheus.history import History, Track

MOST_POINTS = 1000
"""A longer course is told in as many pieces."""

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """The rounds that count, by index: ``inside`` the wave's window, and ``span``, which covers it.

    ``length``: of the wave's window in seconds. ``cut``: the instant from which on gains count, where the warm-up's
    requests came before it; None: all gains do.
    ``complete`` is False, with ``reason``, where too many rounds brought nothing or parts were not watched.
    """

    history: History
    inside: tuple[int, ...]
    span: tuple[int, ...]
    complete: bool
    reason: str | None
    length: float
    cut: float | None = None

    def time(self, index: int) -> float:
        """When the sample of that round was asked for."""
        return self.history.rounds[index].began

    def good_before(self, index: int) -> bool:
        """Tells whether an earlier round brought a page."""
        return any(each.error is None for each in self.history.rounds[:index])


@dataclass(frozen=True, slots=True)
class Found:
    """One series' statistics, the instants they cover and its course (of the first statistic)."""

    values: dict[str, float | None]
    start: float | None = None
    end: float | None = None
    series: Points = ()
    reasons: tuple[str, ...] = ()
    samples: int | None = None

    @property
    def size(self) -> float:
        """By which the largest series are kept."""
        return max((abs(value) for value in self.values.values() if value is not None), default=-1.0)


def gauge(track: Track, asked: tuple[str, ...], window: Window) -> Found | None:
    """None where the series has no sample to tell of."""
    points = [(window.time(i), value) for i in window.inside if (value := track.at(i)) is not None]
    if not points:
        known = any(track.at(i) is not None for i in window.span)
        none: dict[str, float | None] = dict.fromkeys(asked)
        return (
            Found(none, reasons=("no sample lies inside so short a window",)) if known and not window.inside else None
        )
    finite = [(at, value) for at, value in points if math.isfinite(value)]
    if not finite:
        return Found(dict.fromkeys(asked), reasons=(f"the value is {_said(points[-1][1])}",))
    numbers = [value for _, value in finite]
    known_values = {
        "Average": math.fsum(numbers) / len(numbers),
        "Maximum": max(numbers),
        "Minimum": min(numbers),
        "Last": numbers[-1],
    }
    values, reasons = _pick(known_values, asked, "gauge")
    if len(finite) < len(points):
        reasons += (f"{len(points) - len(finite)} of {len(points)} samples are no numbers",)
    parts = _parts(finite)
    course = tuple((part[0][0], math.fsum(value for _, value in part) / len(part)) for part in parts)
    return Found(values, finite[0][0], finite[-1][0], course, reasons, len(finite))


def counter(track: Track, asked: tuple[str, ...], window: Window) -> Found | None:
    """None where the series has no sample to tell of."""
    points = _cumulative(track, window)
    if not points:
        return None
    times, numbers = [window.time(i) for i, _ in points], [value for _, value in points]
    if len(points) < 2:
        return Found(dict.fromkeys(asked), times[0], times[0], reasons=("a single sample tells no gain",))
    inside = set(window.inside)
    within = [(window.time(i), value) for i, value in points if i in inside]
    early = _early(times, window.cut)
    total = increase(numbers) - early * increase(numbers[:2])
    spread = within[-1][0] - within[0][0] if within else 0.0
    rate = increase([value for _, value in within]) / spread if 3 * spread > window.length else total / window.length
    values, reasons = _pick({"Rate": rate, "Total": total}, asked, "counter")
    return Found(values, times[0], times[-1], _rates(times, numbers), (*reasons, *_interpolated(times, early)))


def distributions(
    name: str, labels: Labels, kind: str, asked: tuple[str, ...], window: Window
) -> Iterator[tuple[Labels, Found]]:
    """Histograms, or summaries, of that name: one for each set of labels beside ``le``."""
    suffix = "_bucket" if kind == "histogram" else "_count"
    groups: dict[Labels, dict[float, Track]] = {}
    for key in sorted(window.history.keys(name + suffix, labels)):
        bound = _bound(dict(key[1]).get("le")) if kind == "histogram" else math.inf
        if bound is not None:
            rest = tuple(pair for pair in key[1] if pair[0] != "le" or kind != "histogram")
            groups.setdefault(rest, {})[bound] = window.history.tracks[key]
    for rest, tracks in groups.items():
        sums = window.history.tracks.get((f"{name}_sum", rest))
        if found := _distribution(tracks, sums, kind, asked, window):
            yield rest, found


def _distribution(
    tracks: dict[float, Track], sums: Track | None, kind: str, asked: tuple[str, ...], window: Window
) -> Found | None:
    bounds = sorted(tracks)
    by_round = [dict(_cumulative(tracks[bound], window)) for bound in bounds]
    shared = [index for index in window.span if all(index in each for each in by_round)]
    if not shared:
        return None
    times, rows = [window.time(i) for i in shared], [tuple(each[i] for each in by_round) for i in shared]
    if len(shared) < 2:
        return Found(dict.fromkeys(asked), times[0], times[0], reasons=("a single sample tells no gain",))
    early = _early(times, window.cut)
    before = bucket_increase(rows[:2])
    gains = (all_ - early * first for all_, first in zip(bucket_increase(rows), before, strict=True))
    buckets = tuple(zip(bounds, gains, strict=True))
    total = buckets[-1][1]
    rate = (total + early * before[-1]) / (times[-1] - times[0])
    known: dict[str, float | None] = {"Total": total, "Rate": rate, "Average": None}
    if sums and total:
        numbers = [value for _, value in _cumulative(sums, window)]
        known["Average"] = (increase(numbers) - early * increase(numbers[:2])) / total
    reasons = _interpolated(times, early)
    for statistic in asked if kind == "histogram" else ():
        if (percent := percent_of(statistic)) is not None:
            known[statistic] = quantile(percent / 100, buckets)
            if known[statistic] is not None and beyond_last_bound(percent / 100, buckets):
                reasons += (f"{statistic} is at least that: it lies beyond the last bucket",)
    values, misfits = _pick(known, asked, kind)
    if total == 0:
        reasons += ("nothing was observed within the window",)
    elif kind == "histogram" and bounds[-1] != math.inf:
        reasons += ("the bucket le=+Inf is missing",)
    return Found(values, times[0], times[-1], _course(asked[0], times, rows, bounds), reasons + misfits)


def _early(times: Sequence[float], cut: float | None) -> float:
    """The share of the first step that lies before the cut: of its gain, that share is the warm-up's."""
    return 0.0 if cut is None else min(max(cut - times[0], 0.0) / (times[1] - times[0]), 1.0)


def _interpolated(times: Sequence[float], early: float) -> tuple[str, ...]:
    apart = f"{times[1] - times[0]:.2g} s apart"
    said = f"without the warm-up: what was counted by its end is interpolated between scrapes {apart}"
    return (said,) if early else ()


def _cumulative(track: Track, window: Window) -> list[tuple[int, float]]:
    """(round, value) over the span. A counter that an earlier page did not have began at 0."""
    late = window.good_before(track.born)
    points = []
    for index in window.span:
        value = track.at(index)
        if value is None and late and index < track.born:
            value = 0.0
        if value is not None and math.isfinite(value):
            points.append((index, value))
    return points if any(index >= track.born for index, _ in points) else []


def _rates(times: Sequence[float], numbers: Sequence[float]) -> Points:
    """Per second, from each point to the next; (start of the piece, rate)."""
    step = math.ceil(len(times) / MOST_POINTS)
    edges = [*range(0, len(times) - 1, step), len(times) - 1]
    return tuple(
        (times[a], increase(numbers[a : b + 1]) / (times[b] - times[a]))
        for a, b in pairwise(edges)
        if times[b] > times[a]
    )


def _course(statistic: str, times: Sequence[float], rows: Sequence[Sequence[float]], bounds: Sequence[float]) -> Points:
    percent = percent_of(statistic)
    if percent is None:
        return _rates(times, [row[-1] for row in rows]) if statistic == "Rate" else ()
    step = math.ceil(len(rows) / MOST_POINTS)
    edges = [*range(0, len(rows) - 1, step), len(rows) - 1]
    pieces = ((a, _quantile(percent, bounds, rows[a : b + 1])) for a, b in pairwise(edges))
    return tuple((times[a], value) for a, value in pieces if value is not None)


def _quantile(percent: float, bounds: Sequence[float], rows: Sequence[Sequence[float]]) -> float | None:
    buckets: Buckets = tuple(zip(bounds, bucket_increase(rows), strict=True))
    return quantile(percent / 100, buckets)


def _pick(
    known: dict[str, float] | dict[str, float | None], asked: tuple[str, ...], kind: str
) -> tuple[dict[str, float | None], tuple[str, ...]]:
    misfits = [statistic for statistic in asked if statistic not in known]
    if not misfits:
        return {statistic: known[statistic] for statistic in asked}, ()
    why = f"a {kind} has no {', '.join(misfits)}"
    if kind == "summary" and any(percent_of(each) is not None for each in misfits):
        why += " of a window: its quantiles are of times the server chose"
    return {statistic: known.get(statistic) for statistic in asked}, (why,)


def _parts(points: Sequence[tuple[float, float]]) -> list[Sequence[tuple[float, float]]]:
    size = math.ceil(len(points) / MOST_POINTS)
    return [points[at : at + size] for at in range(0, len(points), size)]


def _bound(text: str | None) -> float | None:
    try:
        return parse_value(text) if text is not None else None
    except ValueError:
        return None


def _said(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
