"""Draws a picture over time with a strip a run, all on the same axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.text import shortened
from visualization.figures.palette import color_of
from visualization.matplotlib_charts.marks import LIMIT, SOFT, is_valid, tick_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from visualization.figures.figures import Curves, Figures, Line

STRIP, ROOM, NUMBERS = 0.42, 1.1, 0.45  # inches: a strip's height, the width of names and of numbers
_GAP = 0.12  # of a strip


def runs_of(chart: Curves) -> list[int]:
    """The runs that have a line, in their order."""
    return sorted({line.run for line in chart.lines if line.run is not None})


def is_apart(chart: Curves) -> bool:
    """Tells whether it has strips."""
    return chart.apart and len(runs_of(chart)) > 1


def draw_strips(chart: Curves, axes: Axes, figures: Figures) -> None:
    """Fill the place of ``axes``, which keeps title and time axis, with a strip for each run."""
    runs, place = runs_of(chart), axes.get_position()
    points = [(x, y) for line in chart.lines for x, y in line.points if y is not None]
    low, high = min(0 if chart.y.scale != "log" else points[0][1], *(y for _, y in points)), max(y for _, y in points)
    levels = [level.value for level in chart.levels if level.value <= 2.5 * high]
    high = max(high, *levels) if levels else high
    each = place.height / len(runs)
    for number, run in enumerate(runs):
        bottom = place.y0 + (len(runs) - 1 - number) * each
        strip = axes.figure.add_axes((place.x0, bottom, place.width, each * (1 - _GAP)), sharex=axes, facecolor="none")
        for line in (each_ for each_ in chart.lines if each_.run == run):
            _line(line, strip, low)
        for level in levels:
            strip.axhline(level, color=LIMIT, linewidth=0.8, linestyle="--")
        _frame(strip, figures, run, (low, high), chart.y.scale)
    axes.set_yticks([])
    axes.tick_params(axis="y", which="both", left=False)
    axes.spines["left"].set_visible(False)


def _line(line: Line, strip: Axes, low: float) -> None:
    x = [at for at, _ in line.points]
    y = [float("nan") if value is None else value for _, value in line.points]
    color, step = color_of(line.run or 0), "steps-post" if line.stepped else "default"
    strip.plot(x, y, "--" if line.dashed else "-", color=color, linewidth=0.8 if line.dashed else 1.2, drawstyle=step)
    if not line.dashed:
        strip.fill_between(x, y, low, step="post" if line.stepped else None, color=color, alpha=0.18, linewidth=0)


def _frame(strip: Axes, figures: Figures, run: int, ends: tuple[float, float], scale: str) -> None:
    """Its name to the left, the ends of its axis to the right."""
    low, high = ends if ends[1] > ends[0] else (ends[0], ends[0] + 1)
    strip.set_yscale("log" if scale == "log" else "linear")
    strip.set_ylim(low, high)
    strip.minorticks_off()
    strip.set_yticks([low, high], [tick_text(float(f"{end:.3g}")) for end in (low, high)], fontsize=6.5, color=SOFT)
    strip.yaxis.tick_right()
    bottom, top = strip.get_yticklabels()
    bottom.set_verticalalignment("bottom")
    top.set_verticalalignment("top")
    strip.tick_params(axis="x", labelbottom=False, bottom=False)
    strip.tick_params(axis="y", length=0)
    for side in ("left", "bottom"):
        strip.spines[side].set_visible(False)
    valid = is_valid(figures, run)
    text = shortened(figures.runs[run].label, 14) if valid else f"✗ {shortened(figures.runs[run].label, 12)}"
    strip.text(-0.01, 0.5, text, transform=strip.transAxes, ha="right", va="center", fontsize=8, color=color_of(run))
