"""A terminal without a window: what stands on it, and in its scrollback, after what a program wrote."""

from __future__ import annotations

import re

_PIECES = re.compile(r"\x1b\[(?P<arguments>[0-9;?]*)(?P<code>[A-Za-z])|(?P<sign>[\s\S])")


class Emulated:
    """Takes what moves the cursor up, what empties the rest of a line or of the screen, and signs of one column.

    A row that is full goes on in the next, as on real terminals once another sign comes. Rows that scrolled away stay
    in ``lines``, and the cursor does not come back to them.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.lines = [""]
        self.cursor_shown = True
        self._row = self._column = 0

    def write(self, text: str) -> Emulated:
        """Take a text of a program."""
        for piece in _PIECES.finditer(text):
            if piece["code"]:
                self._obey(piece["code"], piece["arguments"])
            else:
                self._sign(piece["sign"])
        return self

    def _obey(self, code: str, arguments: str) -> None:
        match code:
            case "A":
                top = max(len(self.lines) - self.height, 0)
                self._row = max(self._row - int(arguments or 1), top)
            case "K":
                self.lines[self._row] = self.lines[self._row][: self._column]
            case "J":
                self.lines[self._row] = self.lines[self._row][: self._column]
                del self.lines[self._row + 1 :]
            case "h" | "l" if arguments == "?25":
                self.cursor_shown = code == "h"
            case "m":
                pass
            case _:
                raise AssertionError(f"an order that no terminal of ours gets: {arguments}{code}")

    def _sign(self, sign: str) -> None:
        if sign == "\r":
            self._column = 0
        elif sign == "\n":
            self._next_row()
        else:
            if self._column == self.width:
                self._next_row()
                self._column = 0
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + sign + line[self._column + 1 :]
            self._column += 1

    def _next_row(self) -> None:
        self._row += 1
        if self._row == len(self.lines):
            self.lines.append("")
