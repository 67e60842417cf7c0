"""The pictures of a run as values: every point, limit and name, and nothing of how they are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.verdict.limits_met import slo_met
from visualization.figures.figures import Axis, Points, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.summary import Summary

Kind = Literal["line", "dashed", "columns", "dots", "squares", "rings"]
Colour = int | Literal["soft", "bad", "warn"]
"""The number of a colour in the palette, or the name of a tone of the page."""

WIDE = 20.0  # from where the largest is so many times the smallest, an axis is logarithmic
SECONDS = Axis("Time", "s")
SHARES = ("success", "rate", "goodput")


@dataclass(frozen=True, slots=True)
class Trace:
    """Points with a name and a colour; ``faint``: from 0, how little each of them stands for."""

    name: str
    points: Points
    colour: Colour = 0
    kind: Kind = "line"
    faint: int = 0

    @property
    def values(self) -> list[float]:
        """The values that are known."""
        return [y for _, y in self.points if y is not None]


@dataclass(frozen=True, slots=True)
class Level:
    """A limit: a line at a height, called by what the user wrote; ``at``: it holds at this place of the x axis."""

    value: float
    name: str
    missed: bool
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A number that stands at a point, by which a table speaks of it."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture.

    ``bands``: the name of each stretch of the x axis, its start and end. ``span``: the least that the x axis shows.
    ``note``: how to read it.
    """

    title: str
    x: Axis
    y: Axis
    traces: tuple[Trace, ...]
    levels: tuple[Level, ...] = ()
    bands: tuple[tuple[str, float, float], ...] = ()
    flags: tuple[Flag, ...] = ()
    span: tuple[float, float] | None = None
    note: str = ""

    @property
    def drawn(self) -> bool:
        """Tells whether there is anything to draw."""
        return any(trace.values for trace in self.traces)


def kind_of(time: str) -> Kind:
    """The kind of a time's line: response times are dashed, as they lie on latencies where nothing waits."""
    return "dashed" if time.startswith("response_time") else "line"


def time_unit(seconds: Iterable[float]) -> tuple[str, float]:
    """The unit that fits times, and how many of it a second has."""
    return ("s", 1.0) if max(seconds, default=0.0) >= 20 else ("ms", 1e3)


def scale_of(values: Sequence[float]) -> Scale:
    """The scale that suits values: those that span much are drawn on a logarithmic one."""
    return "log" if values and min(values) > 0 and max(values) > WIDE * min(values) else "linear"


def scaled(points: Points, factor: float) -> Points:
    """The same points with their values in another unit."""
    return tuple((x, None if y is None else y * factor) for x, y in points)


def whole_wave(summary: Summary) -> tuple[float, float]:
    """The seconds from a wave's start to the end of its load or its last answer."""
    return 0.0, max(summary.duration_s, summary.planned_s or 0.0, 1e-3)


def time_limits(facts: WaveFacts, summary: Summary, *metrics: str) -> Iterator[tuple[Slo, Level]]:
    """The limits on a statistic of these times, each as a line in seconds; ``default`` is what a bare p99 is of."""
    bare = "latency" if summary.response_time is None else "response_time"
    for slo in facts.plan.slos:
        metric = bare if slo.metric == "default" else slo.metric
        if metric in metrics and metric not in SHARES and not slo.is_on_sessions:
            part = summary.part(slo)
            missed = part is None or not slo_met(slo, part)
            yield slo, Level(slo.limit, slo.expression, missed, _nines(slo.stat))


def _nines(stat: str) -> float | None:
    """The place of a percentile on an axis of nines; None of a mean."""
    percent = float(stat[1:]) if stat[1:2].isdigit() else None
    return None if percent is None else -math.log10(1 - percent / 100)
