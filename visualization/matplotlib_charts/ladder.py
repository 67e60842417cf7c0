"""Draws a time of all runs: a row a run, from its median over its tail to its maximum, with the numbers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from visualization.figures.by_name import SOURCES
from visualization.figures.palette import color_of
from visualization.matplotlib_charts.marks import LIMIT, SOFT, is_valid, number_text, put_title, tick_text, title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from visualization.figures.figures import Bar, Bars, Figures

KEY = "Dot: the median. Thick: to p99. Thin: to the maximum. Dashed: a limit."
HEAD, ROW, BESIDE = 0.5, 0.25, 2.0  # inches: above the rows, of a row, right of the axis
_PLACES = (("median", "mean"), ("p99", "p95", "p90", "max"), ("max",))
_WIDE = 20.0  # from where the largest is so many times the smallest, the axis is logarithmic


def height_of(chart: Bars) -> float:
    """Of its picture in inches."""
    return HEAD + ROW * len(runs_of(chart))


def runs_of(chart: Bars) -> list[int]:
    """The runs that have a row: all, of a label or an error those that had it."""
    every = range(len(next(iter(chart.statistics.values()))))
    had = [run for run in every if any(bars[run].value is not None for bars in chart.statistics.values())]
    return had if chart.source in SOURCES else list(every)


def draw_ladder(
    chart: Bars, axes: Axes, figures: Figures, names: Sequence[str], width: float, *, beside: Sequence[Bars] = ()
) -> None:
    """Draw it; ``names``: of the runs that have a row. ``width``: of the axes in inches.

    ``beside``: the charts whose scale it has, too.
    """
    chosen = _chosen(chart)
    rows = [[chart.statistics[name][run] for name in chosen] for run in runs_of(chart)]
    for place, (run, bars) in enumerate(zip(runs_of(chart), rows, strict=True)):
        _row([bar.value for bar in bars if bar.value is not None], place, run, axes, figures)
        for column, bar in enumerate(bars):
            _number(_text(bar), 1 + (column + 1) * BESIDE / len(chosen) / width, place, axes)
    for column, name in enumerate(chosen):
        x, above = 1 + (column + 1) * BESIDE / len(chosen) / width, (0, 7)
        head: dict[str, Any] = {"ha": "right", "fontsize": 8, "color": SOFT}
        axes.annotate(name, (x, 1), xycoords="axes fraction", xytext=above, textcoords="offset points", **head)
    put_title(axes, title_of(chart.title, chart.unit))
    axes.set_yticks(range(len(names)), list(names), fontsize=8)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)  # where every request failed no run has a row
    axes.grid(visible=False, axis="y")
    values = [value for each in (chart, *beside) for value in _values(each)]
    set_scale(axes, [*values, *draw_limits(chart, axes, values)])


def _chosen(chart: Bars) -> list[str]:
    """The statistics that are shown."""
    chosen = [next((name for name in names if name in chart.statistics), "") for names in _PLACES]
    return list(dict.fromkeys(name for name in chosen if name))


def _values(chart: Bars) -> list[float]:
    found = (bar.value for name in _chosen(chart) for bar in chart.statistics[name])
    return [value for value in found if value is not None]


def _text(bar: Bar) -> str:
    return "–" if bar.value is None else f"{bar.sign}{number_text(bar.value)}"


def _number(text: str, x: float, place: float, axes: Axes) -> None:
    axes.text(x, place, text, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=8)


def _row(values: Sequence[float], place: int, run: int, axes: Axes, figures: Figures) -> None:
    if not values:
        return
    color, valid = color_of(run), is_valid(figures, run)
    axes.plot([values[0], values[-1]], [place, place], color=color, linewidth=1, zorder=2)
    if len(values) > 1:
        left, right = sorted(values[:2])
        style: dict[str, Any] = {} if valid else {"facecolor": "white", "hatch": "//////"}
        axes.barh(place, right - left, 0.36, left=left, **{"color": color, "edgecolor": color, **style}, zorder=3)
    face, edge = (color, "white") if valid else ("white", color)
    axes.plot(values[0], place, "o", markerfacecolor=face, markeredgecolor=edge, markersize=7.5, zorder=4)


def draw_limits(chart: Bars, axes: Axes, values: Sequence[float]) -> list[float]:
    """Draw the limits near what was measured, with their texts below the axis, and tell their places."""
    near = [level for level in chart.levels if values and min(values) / 8 <= level.value <= 8 * max(values)]
    for level in near:
        axes.axvline(level.value, color=LIMIT, linewidth=1, linestyle="--", zorder=1)
    if near:
        text = f"{near[0].word} {', '.join(dict.fromkeys(level.text for level in near))}"
        axes.set_xlabel(text, fontsize=8, color=LIMIT, loc="right")
    return [level.value for level in near]


def spans_decades(values: Sequence[float], wide: float = _WIDE) -> bool:
    """Tells whether they are to have a logarithmic axis."""
    return min(values, default=0.0) > 0 and max(values) > wide * min(values)


def _steps(ratio: float) -> tuple[int, ...]:
    """The numbers within a decade that have a tick, of an axis over so many times its beginning: as many as fit."""
    return (1, 2, 5) if ratio < 50 else (1, 3) if ratio < 500 else (1,)


def set_scale(axes: Axes, values: Sequence[float], *, decades: bool = False) -> None:
    """Set the axis below the rows to one that suits values; ``decades``: to a logarithmic one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    least, most = min(values, default=0.0), max(values, default=1.0)
    if decades or spans_decades(values):
        axes.set_xscale("log")
        axes.set_xlim(least / 1.25, most * 1.25)
        axes.xaxis.set_major_locator(LogLocator(subs=_steps(most / least)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(min(1.05 * least, 0), 1.05 * most if most > 0 else 1)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
