"""Draws curves: lines, what stands over them, their axes, and the stages behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visualization.figures.capacity_figures import LIMITS
from visualization.figures.curves import IDEAL
from visualization.figures.palette import color_of, dash_of
from visualization.matplotlib_charts.marks import (
    FAINT,
    LIMIT,
    SOFT,
    is_valid,
    marker_of,
    number_text,
    put_title,
    roomy,
    tick_text,
    title_of,
)
from visualization.matplotlib_charts.strip import draw_strip
from visualization.matplotlib_charts.strips import draw_strips, is_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from visualization.figures.figures import Axis, Cross, Curves, Figures, Line, Points

_ALONE = ("chosen", "faint", "bad")  # points that no line joins
_NAME_ROOM = 0.06  # of an axis, for the names of stages
_LETTERS = 60  # of a small type have room in a picture
_NINES = (0, 50, 90, 99, 99.9, 99.99)


def draw_curves(chart: Curves, axes: Axes, figures: Figures, height: float) -> None:
    """Draw a chart ``height`` inches high."""
    statistic = _static_statistic(chart)
    _bands(chart, axes)
    apart = is_apart(chart)
    for line in chart.lines:
        if line.statistic == statistic and not apart:
            _line(line, axes, figures)
    if apart:
        axes.update_datalim([(x, y) for line in chart.lines for x, y in line.points if y is not None])
    else:
        _levels(chart, axes, statistic)
    names = dict.fromkeys((line.name, line.dashed) for line in chart.lines if line.name and line.run is not None)
    lines = [f"{name} {'dashed' if dashed else 'solid'}" if len(names) == 2 else name for name, dashed in names]
    lines += [f"dashed: {line.name}" for line in chart.lines if line.name == IDEAL]
    key = ", ".join(lines) if len(lines) <= 2 else ""
    title = title_of(chart.title, ", ".join(part for part in (statistic, chart.y.unit, key) if part))
    put_title(axes, title)
    axes.set_xlabel(title_of(chart.x.title, chart.x.unit), fontsize=8)
    _scale(chart.x, chart.y, axes)
    if chart.bands:
        _make_room_above(axes)
    if chart.strip is not None:
        draw_strip(chart.strip, axes, height, color_of)
    if apart:
        draw_strips(chart, axes, figures)


def _levels(chart: Curves, axes: Axes, statistic: str) -> None:
    """The limits as level lines, where they are near what was measured."""
    values = [y for line in chart.lines for _, y in line.points if y is not None]
    for level in chart.levels:
        if level.statistic in ("", statistic) and min(values) / 8 <= level.value <= 8 * max(values):
            end = axes.dataLim.x1 if level.until is None else min(level.until, axes.dataLim.x1)
            axes.hlines(level.value, min(axes.dataLim.x0, 0), end, color=LIMIT, linewidth=1, linestyle="--")
            where, up = (min(axes.dataLim.x0, 0), level.value), (2, 3)
            axes.annotate(level.text, where, xytext=up, textcoords="offset points", fontsize=7.5, color=LIMIT)


def _line(line: Line, axes: Axes, figures: Figures) -> None:
    """A run's own line, or one that runs have in common, with what stands over it."""
    if line.tone not in _ALONE:
        _path(line, axes)
    for place, (run, (at, value)) in enumerate(zip(line.over, line.points, strict=False)):
        _over(line, place, (at, float("nan") if value is None else value), axes, whole=is_valid(figures, run))
    if line.knee is not None:
        axes.axvline(line.knee, color=SOFT, linewidth=1, linestyle=":")
        text, where = f"keeps up to {number_text(line.knee)}/s ", (line.knee, 1)
        axes.annotate(text, where, xycoords=("data", "axes fraction"), ha="right", va="top", fontsize=8)


def _path(line: Line, axes: Axes) -> None:
    """The line itself, with its signs where it is a run's."""
    x = [each for each, _ in line.points]
    y = [float("nan") if each is None else each for _, each in line.points]
    if line.tone == "frontier":
        axes.plot(x, y, color=SOFT, linewidth=8, alpha=0.2, solid_capstyle="round")
    elif line.tone == "bare":
        axes.plot(x, y, color=color_of(line.run or 0), linewidth=1.4)
    elif line.run is not None:
        places = range(len(x))
        every = {
            *places[:: 1 if line.marked else max(len(x) // 6, 1)],
            *(place for place in places if _is_alone(line.points, place)),
        }
        axes.plot(x, y, linestyle=_style(line), color=color_of(line.run), linewidth=1.4,
                  drawstyle="steps-post" if line.stepped else "default",
                  marker=marker_of(line.run), markersize=4, markevery=sorted(every))  # fmt: skip
    elif line.marked:
        axes.plot(x, y, "o", color=SOFT, markerfacecolor="none", markersize=9, markeredgewidth=1.6)
        clear = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # of the lines that would run through the name
        axes.annotate(line.name, (x[0], y[0]), xytext=(-8, -3), textcoords="offset points", ha="right", fontsize=8,
                      bbox=clear, zorder=5)  # fmt: skip
    else:
        color = LIMIT if line.name in LIMITS else "#9aa2af"
        axes.plot(x, y, "-" if line.over else "--", color=color, linewidth=1.2)
        if line.name and y[0] == y[-1]:
            axes.annotate(line.name, (x[0], y[0]), xytext=(2, 3), textcoords="offset points", fontsize=8, color=color)


def _over(line: Line, place: int, point: tuple[float, float], axes: Axes, *, whole: bool) -> None:
    """The point of a run on a line across runs; hollow where it is not ``whole``."""
    run = line.over[place]
    color = FAINT if line.tone == "faint" else color_of(run)
    face = color if whole and line.tone != "bad" else "white"
    if line.crosses:
        _cross(point, line.crosses[place], color, axes)
    axes.plot(*point, marker_of(run), color=color, markerfacecolor=face, markersize=7)
    if line.tone == "bad":
        axes.annotate("✗", point, xytext=(0, 5), textcoords="offset points", ha="center", color=LIMIT)


def _cross(point: tuple[float, float], cross: Cross, color: str, axes: Axes) -> None:
    """The interval of a point, along each axis on which it is bounded."""
    (x, y), (left, right, low, high) = point, cross
    if left is not None and right is not None:
        axes.plot([left, right], [y, y], color=color, linewidth=1.2)
    if low is not None and high is not None:
        axes.plot([x, x], [low, high], color=color, linewidth=1.2)


def _style(line: Line) -> str | tuple[float, tuple[float, ...]]:
    """The dashes of its run; of a second line of a run plain ones."""
    dash = dash_of(line.run or 0)
    return "--" if line.dashed else (0, tuple(each / 2 for each in dash)) if dash else "-"


def _is_alone(points: Points, place: int) -> bool:
    """Tells whether no line leads to a point, which is seen by its marker alone."""
    beside = points[max(place - 1, 0) : place + 2]
    return points[place][1] is not None and sum(y is not None for _, y in beside) == 1


def _bands(chart: Curves, axes: Axes) -> None:
    """Every other stretch of the x axis is shaded; its name stands at the top, upright where it is narrow.

    The axis shows all of each, shaded or not.
    """
    whole = chart.bands[-1][2] - chart.bands[0][1] if chart.bands else 0
    for number, (name, start, end) in enumerate(chart.bands):
        axes.axvspan(start, end, color="#8a93a3", alpha=0.0 if number % 2 else 0.13, linewidth=0)
        middle, narrow = ((start + end) / 2, 0.985), end - start < whole * len(name) / _LETTERS
        axes.annotate(
            name, middle, xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=7, color=SOFT,
            rotation=90 if narrow else 0,
        )  # fmt: skip


def _scale(x: Axis, y: Axis, axes: Axes) -> None:
    from math import log10

    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log" if y.scale == "log" else "linear")
    if y.scale == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(*roomy(axes.dataLim.y0, axes.dataLim.y1))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    if x.scale == "nines":
        places = [-log10(1 - percent / 100) for percent in _NINES]
        axes.set_xticks(places, [f"p{percent:g}" if percent else "min" for percent in _NINES], fontsize=8)
        axes.set_xlim(*roomy(0, max(axes.dataLim.x1, 1)))
    else:
        axes.set_xlim(*roomy(axes.dataLim.x0, axes.dataLim.x1))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))


def _make_room_above(axes: Axes) -> None:
    """The axis goes on above the highest point by the height of a name, so that no line runs through the stages'."""
    (low, high), transform = axes.get_ylim(), axes.yaxis.get_transform()
    bottom, top = transform.transform([low, high])
    axes.set_ylim(low, transform.inverted().transform([top + _NAME_ROOM * (top - bottom)])[0])


def _static_statistic(chart: Curves) -> str:
    """The statistic that a picture without a chooser shows: the tail, where a knee is first felt."""
    known = {line.statistic for line in chart.lines}
    return "p99" if "p99" in known else ""
