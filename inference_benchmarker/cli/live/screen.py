"""The last lines of a terminal, written again in place: what stands above them stays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, TextIO

from inference_benchmarker.cli.live.colours import painted
from inference_benchmarker.words.redact import hidden
from inference_benchmarker.words.text import columns, cut, folded, plain_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    Piece = tuple[str, str]
    """A text and its colour, which may be empty."""
    Line = Sequence[Piece]

_HIDDEN, _SHOWN = "\x1b[?25l", "\x1b[?25h"  # the cursor
_REST_OF_LINE, _REST_OF_SCREEN = "\x1b[K", "\x1b[J"
_LEAST_ROWS = 4


class Drawing(Protocol):
    """Lines that are shown somewhere, and written again in place."""

    def size(self) -> tuple[int, int]:
        """Columns and rows."""

    def show(self, lines: Sequence[Line]) -> None:
        """Write these lines in place of those that are shown."""

    def print(self, text: str) -> None:
        """Write lines that stay above them."""

    def clear(self) -> None:
        """Take them away."""


class Screen:
    """Some lines that are cut at the terminal's width. It may have another size whenever they are written again."""

    def __init__(self, stream: TextIO, *, colours: bool) -> None:
        self._stream = stream
        self._colours = colours
        self._widths: list[int] = []
        self._at_width = 0

    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal as it is now."""
        try:
            found = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        return found.columns or 80, found.lines or 24

    def show(self, lines: Sequence[Line]) -> None:
        """Write these lines in place of those that are shown."""
        width, height = self.size()
        lines = lines[: max(height, _LEAST_ROWS) - 1]
        shown = [fitted(line, width - 1) for line in lines]
        written = (self._written(line) + _REST_OF_LINE + "\n" for line in shown)
        begin = self._beginning(width) if self._widths else "\r" + _HIDDEN
        self._write(begin + "".join(written) + _REST_OF_SCREEN)
        self._widths, self._at_width = [sum(columns(text) for text, _ in line) for line in shown], width

    def print(self, text: str) -> None:
        """Write lines that stay above those that are shown, until these are shown again."""
        self.clear()
        self._write("\r" + _REST_OF_LINE + folded(plain_lines(hidden(text)), self.size()[0] - 1) + "\n")

    def clear(self) -> None:
        """Take away the lines that are shown."""
        if self._widths:
            self._write(self._beginning(self.size()[0]) + _REST_OF_SCREEN + _SHOWN)
            self._widths = []

    def _beginning(self, width: int) -> str:
        """To the first column of the first line: a terminal that became narrower shows a line in several rows."""
        rows = sum(max(1, -(-each // width)) for each in self._widths) if width < self._at_width else len(self._widths)
        return f"\r\x1b[{rows}A"

    def _written(self, line: Line) -> str:
        return "".join(painted(text, colour) if colour and self._colours else text for text, colour in line)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def fitted(line: Line, width: int) -> Line:
    """As much of a line as these columns hold; … says that there is more."""
    if sum(columns(text) for text, _ in line) <= width:
        return line
    pieces, room = [], width - 1
    for text, colour in line:
        part = cut(text, room)
        pieces.append((part, colour))
        room -= columns(part)
    return [*pieces, ("…", "")]
