"""The figures to draw, with every number, and nothing of how.

A figure is a set of bars (one a run) or of curves. Units are those a reader sees: ms, %, requests a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Points = tuple[tuple[float, float | None], ...]
Cross = tuple[float | None, float | None, float | None, float | None]
"""The interval of a point: from and to on the x axis, from and to on the y axis; None where nothing bounds it."""
Scale = Literal["linear", "log", "nines"]
Tone = Literal["", "bare", "frontier", "chosen", "faint", "bad"]

STATISTICS = {"mean": "mean", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p99.9": "p99_9", "max": "max"}
"""The choices of the statistic chooser, and what they are called in summary.json."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One run's number, with its 95% interval where the records bound it; ``sign``: ≥ or ≤ where it is a bound.

    ``note``: what a reader must know of it, or why there is none.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    sign: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """A limit, drawn as a line at its value; ``text``: as it was given, with whose it is where it is not all runs'.

    ``statistic``: it is drawn where the chooser stands on it. ``over``: a line across runs, whose points are of these
    runs; ``knee``: the x of the last one with which the endpoint keeps up. ``stepped``: a value holds until the next
    point. ``marked``: every point has its sign, not some of them.
    """

    value: float
    text: str
    statistic: str = ""
    word: str = "limit"
    """The word before its text."""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """One metric of all runs: a bar a run, in their order, for each statistic; "" where there is nothing to choose.

    ``first``: the number of the run that has the first of them; the runs before it and after the last have none.
    """

    field: str
    title: str
    unit: str
    source: str
    statistics: dict[str, tuple[Bar, ...]]
    first: int = 0
    levels: tuple[Level, ...] = ()

    @property
    def measured(self) -> bool:
        """Tells whether any run has a value."""
        return any(bar.value is not None for bars in self.statistics.values() for bar in bars)


def with_values(bars: dict[str, tuple[Bar, ...]]) -> dict[str, tuple[Bar, ...]]:
    """The statistics of which any run has a value; all where none has any."""
    found = {choice: each for choice, each in bars.items() if any(bar.value is not None for bar in each)}
    return found or bars


@dataclass(frozen=True, slots=True)
class Axis:
    """The quantity along an axis. ``nines``: a percentile on a scale where 90, 99, 99.9 are equally far apart."""

    title: str
    unit: str
    scale: Scale = "linear"


@dataclass(frozen=True, slots=True)
class Line:
    """Points of the run with this number; ``name`` tells lines of one run apart, all but the first are dashed.

    ``statistic``: it is drawn where the chooser stands on it. ``over``: a line across runs, whose points are of these
    runs; ``knee`` is one of them. ``stepped``: a value holds until the next point. ``marked``: every point has its
    sign, not some of them. ``tone``: ``bare`` has no signs, ``frontier`` is wide behind all others; ``chosen``,
    ``faint`` and ``bad`` are points alone: plain, grey or crossed out.
    ``crosses``: the interval of each point; ``texts``: what it is of.
    """

    run: int | None
    name: str
    points: Points
    dashed: bool = False
    statistic: str = ""
    over: tuple[int, ...] = ()
    knee: float | None = None
    stepped: bool = False
    marked: bool = False
    tone: Tone = ""
    crosses: tuple[Cross, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened in a run at a place of the x axis; ``sign``: one of ``SIGNS``."""

    run: int
    x: float
    sign: str
    text: str


SIGNS = {"load": "▲", "alarm": "!", "asked": "○", "served": "●", "failed": "✗"}
"""The sign of each kind of event: the load rose, an alarm fired, instances were asked for, served, or did not come."""


STRIP_KEY = (
    "Instances: filled, those that serve; dashed, those requested; "
    "▲ load rose, ! alarm, ○ requested, ● served, ✗ failed."
)


@dataclass(frozen=True, slots=True)
class Strip:
    """A low picture below another, on its x axis: steps, those that are not dashed filled, and marks."""

    title: str
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """One picture of lines on two axes; ``bands``: the name of each stretch of the x axis, its start and end.

    ``apart``: each run has a strip of its own, all on the same axes. ``until``: the x axis goes so far at least.
    """

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    bands: tuple[tuple[str, float, float], ...] = ()
    strip: Strip | None = None
    levels: tuple[Level, ...] = ()
    apart: bool = False
    until: float | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table. ``run``: whose sign stands before it; ``strong``: it is chosen; ``bar``: see ``Table``."""

    cells: tuple[str, ...]
    run: int | None = None
    strong: bool = False
    bar: Bar | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts below their head, the first column to the left; ``notes``: sentences below them.

    ``bar_at``: the column in which each row's ``bar`` is drawn, its interval as a bracket, all on one scale from 0.
    ``signed``: as a dot with its interval, on one scale around 0.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    bar_at: int | None = None
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Tile:
    """A number to know first, with what goes with it; ``large``: the answer itself."""

    name: str
    value: str
    note: str = ""
    tone: Literal["", "good", "bad"] = ""
    large: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Figures that belong together, with a sentence on how to read them; ``pictured``: outside of the page, too.

    ``tables`` stand before the charts; ``commands``, lines for a shell, after them. ``same``: names and values of what
    is equal in all runs and has no chart.
    """

    key: str
    title: str
    text: str
    charts: tuple[Bars | Curves, ...]
    pictured: bool = True
    tables: tuple[Table, ...] = ()
    commands: tuple[str, ...] = ()
    same: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """The content of a column for one run: ``rank`` is what rows are sorted by; ``bar`` is drawn below the text.

    ``note``: a smaller line, last.
    """

    text: str
    rank: float | None = None
    bar: Bar | None = None
    tone: Literal["", "good", "warn", "bad"] = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the overview. ``level``: the limit on its numbers; ``numeric``: to the right, its bars from 0."""

    title: str
    numeric: bool = True
    level: Level | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The table to read first, a row a run in their order; ``same``: the facts that all runs share."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    same: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """The words on a run above all figures. ``headline``: the numbers to know first, by name.

    ``doubtful``: the numbers are not the endpoint's. ``missed``: a threshold was, or it did not end as planned.
    ``precision``: how near its percentiles are, where they are not exact.
    """

    label: str
    verdict: str
    doubtful: bool
    missed: bool
    facts: tuple[str, ...]
    headline: tuple[tuple[str, str], ...]
    hover: tuple[str, ...]
    findings: tuple[str, ...]
    problems: tuple[str, ...]
    precision: str = ""


OF_BARS = (
    "Bars start at zero. A bracket on a bar is its 95% confidence interval, from the variation between seconds. "
    "≥ marks a lower bound: requests were abandoned, or no higher rate could be tried. * marks a note, shown on "
    "hover and in the table. Hatched bars belong to INVALID runs: their load was not the planned one."
)
"""The footer of a page that has bars."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that a report of these runs shows."""

    runs: tuple[Card, ...]
    sections: tuple[Section, ...]
    statistic: str = "median"
    """The one that is shown at first."""
    title: str = "Benchmark comparison"
    lead: str = ""
    """The sentence to read first."""
    tiles: tuple[Tile, ...] = ()
    answer: tuple[Table, ...] = ()
    """What stands below that sentence, in place of the cards where there is any."""
    overview: Overview | None = None
    """The runs in a table, in place of the cards, too."""
    footer: str = OF_BARS
    sides: tuple[int, ...] = ()
    """The side of each run, 0 or 1, where the runs are two sides: a side has one colour."""
