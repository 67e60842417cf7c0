"""The panel of the live view: as wide as the terminal, a line for each figure. Pure."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from inference_benchmarker.cli.live.live_lines import sparkline
from inference_benchmarker.cli.live.screen import fitted
from inference_benchmarker.words.text import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.cli.live.live_lines import LiveFigure
    from inference_benchmarker.cli.live.screen import Line

TWO_COLUMNS = 132  # columns of a terminal from which on figures stand side by side
MOST_BAR = 30
MOST_LINES = 3
_SPACE, _MOST_VALUE = 2, 30
_USUAL_NAME, _USUAL_VALUE = len("response time p99"), 17  # widths that seldom change: the lines beside them stand still


def head(elapsed: str, share: float | None, text: str, width: int) -> Line:
    """The time, a bar for the share that is over (None: nobody knows the end, so there is none), and the state."""
    if share is None:
        return [(f"{elapsed}  {text}", "")]
    bar = max(min(MOST_BAR, width // 3, width - len(elapsed) - columns(text) - 5), 0)
    done = round(share * bar)
    return [(f"{elapsed}  ", ""), ("━" * done, "green"), ("─" * (bar - done), "dim"), (f"  {text}", "")]


def panel(
    first: Line,
    rows: Sequence[LiveFigure],
    lists: Sequence[tuple[str, Sequence[Line]]],
    *,
    stop: int,
    width: int,
    minute: int,
) -> list[Line]:
    """The head, the figures with their lines up to second ``stop``, and lists of texts below them by name.

    ``minute``: the seconds that a line is for, fewer than 60 where the wave is shorter.
    """
    half = (len(rows) + 1) // 2 if width >= TWO_COLUMNS else len(rows)
    sides = [rows[:half], rows[half:]] if half < len(rows) else [rows]
    room = (width - 1 - (len(sides) - 1) * _SPACE) // len(sides)
    drawn = [_figures(side, stop, room, minute) for side in sides]
    figures = [
        [piece for side in line for piece in (*_padded(side, room), (" " * _SPACE, ""))]
        for line in zip_longest(*drawn, fillvalue=())
    ]
    below = [line for name, cells in lists for line in _listed(name, cells, width - 1)]
    return [first, *map(_stripped, figures), *below]


def _figures(rows: Sequence[LiveFigure], stop: int, room: int, minute: int) -> list[Line]:
    """Name, value and line of each row; the line has what names and values leave."""
    name = max([_USUAL_NAME, *(len(row.name) for row in rows)])
    value = min(max([_USUAL_VALUE, *(len(row.value) for row in rows)]), _MOST_VALUE)
    value = max(min(value, room - name - _SPACE), 1)
    space = min(room - name - value - 2 * _SPACE, minute)
    return [
        [
            (row.name.ljust(name + _SPACE), "dim"),
            *_padded(fitted([(row.value, "alarm" if row.alarm else "bold")], value), value + _SPACE),
            (sparkline(row.points, stop, space, minute), "yellow" if row.alarm else "cyan"),
        ]
        for row in rows
    ]


def _listed(name: str, cells: Sequence[Line], width: int) -> list[Line]:
    """A list in lines, of which a few are enough; none of its texts is divided but one that is longer than a line."""
    begin: Line = [(name.ljust(_USUAL_NAME + _SPACE), "dim")]
    below: Line = [(" " * (_USUAL_NAME + _SPACE), "")]
    if width < 2 * _USUAL_NAME + _SPACE:
        begin, below = [(f"{name}: ", "dim")], [("  ", "")]
    lines = [begin]
    for cell in cells:
        longer = [*lines[-1], *([("  ", "")] if lines[-1] not in (begin, below) else []), *cell]
        if _width(longer) <= width or lines[-1] in (begin, below):
            lines[-1] = longer
        else:
            lines.append([*below, *cell])
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], fitted([*lines[MOST_LINES - 1], (" " * width, "")], width)]
    return [fitted(line, width) for line in lines] if cells else []


def _width(line: Line) -> int:
    return sum(columns(text) for text, _ in line)


def _padded(line: Line, room: int) -> Line:
    return [*line, (" " * (room - _width(line)), "")]


def _stripped(line: Line) -> Line:
    """Without spaces at its end."""
    pieces = list(line)
    while pieces and not pieces[-1][0].strip():
        pieces.pop()
    return pieces
