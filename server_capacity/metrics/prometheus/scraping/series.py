"""The statistics of one scraped gauge or counter over the window, what they cover, and its course. Pure.

A gauge's values are those of the samples inside the window. A counter's gain is over the rounds that cover the window,
without what the warm-up gained; its rate is between the first and the last sample inside, or that of its gain where
these lie together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from server_capacity.metrics.prometheus.block import percent_of
from server_capacity.metrics.prometheus.deltas import falls, increase
from server_capacity.metrics.prometheus.scraping.processes import fell, jumped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.facts.server_metric import Bound
    from server_capacity.metrics.prometheus.scraping.history import History, Track

MOST_POINTS = 1000
"""A longer course is asked for in as many pieces."""

LEAST_THERE = 0.75
"""Of the pages of the window, as of CloudWatch's buckets."""

MOST_MIXED = 0.15
"""Of the window's time: so much may lie in one step with the warm-up's, by whose gain it is only interpolated."""

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """The rounds that count, by index: ``inside`` the time of load, and ``span``, which covers the wave's window.

    ``loaded``: those of ``span`` that cover the time of load, whose ``length`` is in seconds. ``cut``: the instant from
    which on gains count, where the warm-up's requests came before it; None: all gains do.
    ``several``: why what was scraped is not one server's, ``mixed``: why it may not be. ``started``: when the process
    that answered a round began, of the rounds of ``span`` whose page says it.
    ``complete`` is False, with ``reason``, where too many rounds brought nothing or parts were not watched.
    """

    history: History
    inside: tuple[int, ...]
    span: tuple[int, ...]
    complete: bool
    reason: str | None
    length: float
    loaded: tuple[int, ...] = ()
    cut: float | None = None
    several: str | None = None
    mixed: str | None = None
    started: Mapping[int, float] = field(default_factory=dict)

    def time(self, index: int) -> float:
        """When the sample of that round was asked for."""
        return self.history.rounds[index].began

    @property
    def known(self) -> bool:
        """Tells whether each page says when its process started."""
        return 0 < len(self.started) == len(self.span)

    def falls(self, rounds: Sequence[int], rows: Sequence[Sequence[float]]) -> int:
        """Count the falls of counters from round to round that are no restarts by what the pages say."""
        pairs = zip(pairwise(rounds), pairwise(rows), strict=True)
        return sum(falls(pair) for (before, now), pair in pairs if not self._restarted(before, now))

    def _restarted(self, before: int, now: int) -> bool:
        return self.known and self.started[before] < self.started[now]

    def good_before(self, index: int) -> bool:
        """Tells whether an earlier round brought a page."""
        return any(each.error is None for each in self.history.rounds[:index])


@dataclass(frozen=True, slots=True)
class SeriesValues:
    """One series' statistics, the instants they cover and its course (of the first statistic).

    ``gap``: of how many of the window's pages it was missing, where these are many.
    """

    values: dict[str, float | None]
    start: float | None = None
    end: float | None = None
    series: Points = ()
    reasons: tuple[str, ...] = ()
    samples: int | None = None
    bounds: dict[str, Bound] = field(default_factory=dict)
    buckets: dict[str, tuple[float, float]] = field(default_factory=dict)
    gap: str | None = None

    @property
    def size(self) -> float:
        """By which the largest series are kept."""
        return max((abs(value) for value in self.values.values() if value is not None), default=-1.0)


def gauge(track: Track, asked: tuple[str, ...], window: Window) -> SeriesValues | None:
    """None where the series has no sample."""
    points = [(window.time(i), value) for i in window.inside if (value := track.at(i)) is not None]
    if not points:
        known = any(track.at(i) is not None for i in window.span)
        none: dict[str, float | None] = dict.fromkeys(asked)
        return (
            SeriesValues(none, reasons=("no sample lies inside so short a window",))
            if known and not window.inside
            else None
        )
    finite = [(at, value) for at, value in points if math.isfinite(value)]
    if not finite:
        return SeriesValues(dict.fromkeys(asked), reasons=(f"the value is {_said(points[-1][1])}",))
    numbers = [value for _, value in finite]
    known_values = {
        "Average": math.fsum(numbers) / len(numbers),
        "Maximum": max(numbers),
        "Minimum": min(numbers),
        "Last": numbers[-1],
    }
    values, reasons = pick(known_values, asked, "gauge")
    if len(finite) < len(points):
        reasons += (f"{len(points) - len(finite)} of {len(points)} samples are not numbers",)
    parts = _parts(finite)
    course = tuple((part[0][0], math.fsum(value for _, value in part) / len(part)) for part in parts)
    bounds = about(values) if window.mixed else {}
    reasons += (window.mixed,) if window.mixed else ()
    gap = gap_of(len(points), len(window.inside))
    return SeriesValues(values, finite[0][0], finite[-1][0], course, reasons, len(finite), bounds, gap=gap)


def counter(track: Track, asked: tuple[str, ...], window: Window) -> SeriesValues | None:
    """None where the series has no sample."""
    points = cumulative(track, window)
    if not points:
        seen = [value for index in window.span if (value := track.at(index)) is not None]
        return SeriesValues(dict.fromkeys(asked), reasons=(f"the value is {_said(seen[-1])}",)) if seen else None
    times, numbers = [window.time(i) for i, _ in points], [value for _, value in points]
    if len(points) < 2:
        return SeriesValues(dict.fromkeys(asked), times[0], times[0], reasons=("a single sample gives no increase",))
    if unknown := fell(window.falls([i for i, _ in points], [(value,) for value in numbers])):
        return SeriesValues(dict.fromkeys(asked), times[0], times[-1], reasons=(unknown,))
    inside = set(window.inside)
    within = [(window.time(i), value) for i, value in points if i in inside]
    gone = early(times, window.cut)
    total, gained = (
        increase(some) - gone * increase(numbers[:2])
        for some in (numbers, [value for i, value in points if i <= window.loaded[-1]])
    )
    spread = within[-1][0] - within[0][0] if within else 0.0
    rate = increase([value for _, value in within]) / spread if 3 * spread > window.length else gained / window.length
    values, reasons = pick({"Rate": rate, "Total": total}, asked, "counter")
    jump = window.mixed or jumped(numbers, known=window.known)
    notes = (*reasons, *interpolated(times, gone, window), *((jump,) if jump else ()))
    bounds = about(values) if jump or is_mixed(times, window) else {}
    gap = ended([i for i, _ in points], window) or gap_of(len(points), len(window.span))
    return SeriesValues(values, times[0], times[-1], rates(times, numbers), notes, bounds=bounds, gap=gap)


def ended(rounds: Sequence[int], window: Window) -> str | None:
    """The sentence on a counter that the window's last pages lack: what it gained since then is not known."""
    after = sum(index > rounds[-1] for index in window.span)
    return f"it is not on the last {after} of the {len(window.span)} pages of the window" if after > 1 else None


def gap_of(there: int, pages: int) -> str | None:
    """The sentence on a series that too many of the window's pages lack: what it was then is not known."""
    if there >= LEAST_THERE * pages:
        return None
    return f"it stood on {there} of the {pages} pages of the window alone"


def early(times: Sequence[float], cut: float | None) -> float:
    """The share of the first step that lies before the cut: of its gain, that share is the warm-up's."""
    return 0.0 if cut is None else min(max(cut - times[0], 0.0) / (times[1] - times[0]), 1.0)


def is_mixed(times: Sequence[float], window: Window) -> bool:
    """Tells whether the first step has too much of both the warm-up and the window to know what each gained."""
    cut = window.cut
    return cut is not None and min(cut - times[0], times[1] - cut) > MOST_MIXED * window.length


def interpolated(times: Sequence[float], gone: float, window: Window) -> tuple[str, ...]:
    """The sentence that says so, where the first step has such a share."""
    apart = f"{times[1] - times[0]:.2g} s apart"
    apart += f", which says too little of {window.length:.3g} s: scrape more often" if is_mixed(times, window) else ""
    said = f"without the warm-up: what was counted by its end is interpolated between scrapes {apart}"
    return (said,) if gone else ()


def about(values: dict[str, float | None]) -> dict[str, Bound]:
    """The bounds that say so of every value there is."""
    return {statistic: "about" for statistic, value in values.items() if value is not None}


def cumulative(track: Track, window: Window) -> list[tuple[int, float]]:
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


def edges(samples: int) -> list[int]:
    """The samples at which the pieces of a course begin and end."""
    step = math.ceil(samples / MOST_POINTS)
    return [*range(0, samples - 1, step), samples - 1]


def rates(times: Sequence[float], numbers: Sequence[float]) -> Points:
    """Per second, from each point to the next; (start of the piece, rate)."""
    return tuple(
        (times[a], increase(numbers[a : b + 1]) / (times[b] - times[a]))
        for a, b in pairwise(edges(len(times)))
        if times[b] > times[a]
    )


def pick(
    known: dict[str, float] | dict[str, float | None], asked: tuple[str, ...], kind: str
) -> tuple[dict[str, float | None], tuple[str, ...]]:
    """The statistics that were asked for, and a sentence on those that the kind does not have."""
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


def _said(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
