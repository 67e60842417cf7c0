"""The marks that all charts of a picture share: colours and markers of runs, titles, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from visualization.figures.figures import Figures

SOFT, LIMIT, FAINT = "#565e6c", "#b3200f", "#a9b0bb"
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "*")
_TITLE = 44  # so many characters stand above one of three columns
_ROOM = 0.05  # how much of an axis is left free beyond the first and the last point, so that markers stay whole


def roomy(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis that begins at 0 where a point there leaves room for its marker; 0 to 1 without a point."""
    if low > high:
        return 0, 1
    room = _ROOM * ((max(high, 0) - min(low, 0)) or 1)
    return min(low - room, 0), max(high + room, 0) if high or low else 1


def marker_of(run: int) -> str:
    """The marker of a run, in matplotlib's letters."""
    return _MARKERS[run % len(_MARKERS)]


def put_title(axes: Axes, title: str, x: float = 0) -> None:
    """Above the chart, from ``x`` of its width on; smaller where it is long."""
    axes.set_title(title, x=x, fontsize=min(9.5, 9.5 * _TITLE / len(title)))


def title_of(title: str, unit: str) -> str:
    """A title with its unit, if it has one."""
    return f"{title} ({unit})" if unit else title


def is_valid(figures: Figures, run: int) -> bool:
    """Tells whether nothing is doubtful about a run."""
    return not figures.runs[run].doubtful


def number_text(value: float) -> str:
    """A number to four digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def tick_text(value: float) -> str:
    """On an axis, where there is little room."""
    sizes = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
    size, letter = next((each for each in sizes if abs(value) >= each[0]), (1, ""))
    return number_text(value / size) + letter
