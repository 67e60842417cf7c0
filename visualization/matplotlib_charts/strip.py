"""Draws the strip below a picture over time: the server's instances, on the same axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from visualization.figures.figures import Strip

HEIGHT, _GAP = 0.62, 0.2  # inches
_SIGN_ROOM = 1.45  # above the highest number of instances, for the marks


def draw_strip(strip: Strip, axes: Axes, chart_height: float, color: Callable[[int], str]) -> None:
    """Take the lower part of the picture's place; ``chart_height``: of both, in inches."""
    place = axes.get_position()
    share = HEIGHT / chart_height * place.height
    axes.set_position((place.x0, place.y0 + share, place.width, place.height - share))
    lower = axes.figure.add_axes(
        (place.x0, place.y0, place.width, share * (1 - _GAP / HEIGHT)), sharex=axes, facecolor="none"
    )
    for line in strip.lines:
        run = line.run or 0
        x, y = [each for each, _ in line.points], [each or 0 for _, each in line.points]
        lower.plot(x, y, "--" if line.dashed else "-", color=color(run), linewidth=1.1, drawstyle="steps-post")
        if not line.dashed:
            lower.fill_between(x, y, step="post", color=color(run), alpha=0.22, linewidth=0)
    most = max((y or 0 for line in strip.lines for _, y in line.points), default=0) or 1
    lower.set_ylim(0, most * _SIGN_ROOM)
    for mark in strip.marks:
        lower.axvline(mark.x, ymax=1 / _SIGN_ROOM, color=color(mark.run), linewidth=0.6, alpha=0.6)
        lower.annotate(mark.sign, (mark.x, most * 1.08), ha="center", va="bottom", fontsize=6.5)
    lower.set_yticks([0, most])
    lower.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    lower.set_ylabel(strip.title, fontsize=6.5)
    lower.tick_params(labelsize=7)
    lower.set_xlabel(axes.get_xlabel(), fontsize=8)
    axes.set_xlabel("")
    axes.tick_params(labelbottom=False)
