"""The panel of the live view as rich draws it: as wide as the terminal, a line for each figure."""

from __future__ import annotations

from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING

from inference_benchmarker.cli.live_lines import LINE_S, NO_BREAK, sparkline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Group
    from rich.text import Text

    from inference_benchmarker.cli.live_lines import Row

TWO_COLUMNS = 132  # columns of a terminal from which on figures stand side by side
MOST_BAR = 30
MOST_LINES = 3
_SPACE, _MOST_VALUE = 2, 26
_USUAL_NAME, _USUAL_VALUE = len("response time p99"), 17  # widths that seldom change: the lines beside them stand still


def head(elapsed: str, share: float | None, text: str, width: int) -> Text:
    """The time, a bar for the share that is over (None: nobody knows the end, so there is none), and the state."""
    from rich.text import Text

    if share is None:
        return Text(f"{elapsed}  {text}")
    bar = min(MOST_BAR, width // 3)
    done = round(share * bar)
    return Text.assemble(f"{elapsed}  ", ("━" * done, "bar.complete"), ("━" * (bar - done), "bar.back"), f"  {text}")


def panel(first: Text, rows: Sequence[Row], last: Sequence[str], stop: int, width: int) -> Group:
    """The head, the figures with their last minute up to second ``stop``, and lines of text below them."""
    from rich.console import Group
    from rich.text import Text

    half = (len(rows) + 1) // 2 if width >= TWO_COLUMNS else len(rows)
    columns = [rows[:half], rows[half:]] if half < len(rows) else [rows]
    room = (width - 1 - (len(columns) - 1) * _SPACE) // len(columns)
    drawn = [_lines(column, stop, room) for column in columns]
    figures = [
        Text((" " * _SPACE), no_wrap=True).join(_padded(each, room) for each in line)
        for line in zip_longest(*drawn, fillvalue=Text())
    ]
    texts = [Text(line) for text in last for line in _wrapped(text, width - 1)]
    return Group(*(_cut(line, width) for line in (first, *figures, *texts)))


def _lines(rows: Sequence[Row], stop: int, room: int) -> list[Text]:
    """Name, value and line of each row; the line has what names and values leave."""
    from rich.text import Text

    name = max([_USUAL_NAME, *(len(row.name) for row in rows)])
    value = min(max([_USUAL_VALUE, *(len(row.value) for row in rows)]), _MOST_VALUE)
    value = max(min(value, room - name - _SPACE), 1)
    space = min(room - name - value - 2 * _SPACE, LINE_S)
    lines = []
    for row in rows:
        text = row.value if len(row.value) <= value else f"{row.value[: value - 1]}…"
        style = "bold yellow" if row.alarm else "bold"
        line = sparkline(row.points, stop, space)
        lines.append(
            Text.assemble(
                (row.name.ljust(name), "dim"),
                " " * _SPACE,
                (text.ljust(value), style),
                " " * _SPACE,
                (line, "yellow" if row.alarm else "cyan"),
            )
        )
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    """The lines of a text, of which a few are enough."""
    lines = wrap(text, width, subsequent_indent="  ", max_lines=MOST_LINES, placeholder=" …", break_on_hyphens=False)
    return [line.replace(NO_BREAK, " ") for line in lines]


def _padded(line: Text, room: int) -> Text:
    line.truncate(room, pad=True)
    return line


def _cut(line: Text, width: int) -> Text:
    line.no_wrap = True
    line.truncate(width - 1, overflow="ellipsis")
    line.rstrip()
    return line
