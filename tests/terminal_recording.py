"""A recording of a terminal as an animated SVG: a command runs in a pseudo-terminal, its screens become frames.

What is understood of a terminal's language is what our commands use: lines, colours, moving up, and erasing.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from dataclasses import dataclass, field
from html import escape
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS, COLUMNS = 24, 80
_STEP_S = 0.25
_LAST_S = 6.0  # for which the last screen stands
_TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)|\x1b")
_COLORS = {"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "36": "#56d4dd", "2": "#8b949e"}
_INK, _PAPER = "#e6edf3", "#0d1117"
_STYLE = (
    "text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "white-space:pre;fill:{ink}}}"
    ".f{{visibility:hidden;animation-duration:{whole:.1f}s;animation-iteration-count:infinite;"
    "animation-timing-function:step-end}}{rules}"
    "@media (prefers-reduced-motion:reduce),print{{.f{{animation:none}}.f{last}{{visibility:visible}}}}"
)
_WIDE, _HIGH, _TOP, _SIDE = 8.43, 18, 40, 14
Style = frozenset[str]


@dataclass(slots=True)
class Terminal:
    """A screen: rows of characters with their styles, and where the next one goes."""

    rows: list[list[tuple[str, Style]]] = field(default_factory=lambda: [[] for _ in range(ROWS)])
    row: int = 0
    column: int = 0
    style: Style = frozenset()

    def feed(self, text: str) -> None:
        """Take in what a program wrote."""
        for codes, letter, control, plain in _TOKEN.findall(text):
            if letter == "m":
                self._dress(codes)
            elif letter == "A":
                self.row = max(self.row - int(codes or 1), 0)
            elif letter == "K":
                del self.rows[self.row][self.column :]
            elif letter == "J":
                self._erase_below()
            elif control == "\r":
                self.column = 0
            elif control == "\n":
                self._next_line()
            else:
                self._write(plain)

    def screen(self) -> tuple[tuple[tuple[str, Style], ...], ...]:
        """All rows as runs of text in one style."""
        return tuple(tuple(_runs(row)) for row in self.rows)

    def _dress(self, codes: str) -> None:
        for code in (codes or "0").split(";"):
            self.style = frozenset() if code == "0" else self.style | {code}

    def _erase_below(self) -> None:
        del self.rows[self.row][self.column :]
        for row in self.rows[self.row + 1 :]:
            row.clear()

    def _next_line(self) -> None:
        self.row += 1
        if self.row == ROWS:
            self.rows = [*self.rows[1:], []]
            self.row -= 1

    def _write(self, text: str) -> None:
        row = self.rows[self.row]
        row += [(" ", frozenset[str]())] * (self.column - len(row))
        row[self.column : self.column + len(text)] = [(letter, self.style) for letter in text]
        self.column += len(text)


def _runs(row: Sequence[tuple[str, Style]]) -> Iterator[tuple[str, Style]]:
    text, style = "", frozenset[str]()
    for letter, its in row:
        if its != style:
            yield text, style
            text, style = "", its
        text += letter
    yield text, style


Frame = tuple[float, tuple[tuple[tuple[str, Style], ...], ...]]


def recorded(command: Sequence[str], typed: str) -> tuple[list[Frame], str]:
    """The screens of a command with the seconds since its start at which each appeared, and all that it wrote.

    ``typed``: what stands behind the prompt in the first line.
    """
    terminal, reported, frames = Terminal(), "", list[Frame]()
    terminal.feed(f"$ {typed}\r\n")
    screen, beneath = pty.openpty()
    fcntl.ioctl(beneath, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    child = subprocess.Popen(
        command,
        stdin=beneath,
        stdout=beneath,
        stderr=beneath,
        env=os.environ | {"TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(beneath)
    start = monotonic()
    frames.append((0.0, terminal.screen()))
    for piece in _pieces(screen):
        terminal.feed(piece)
        reported += piece
        at = monotonic() - start
        if at - frames[-1][0] >= _STEP_S:
            frames.append((at, terminal.screen()))
    frames.append((monotonic() - start, terminal.screen()))
    child.wait()
    os.close(screen)
    return frames, reported


def _pieces(screen: int) -> Iterator[str]:
    left = b""
    while True:
        try:
            data = os.read(screen, 1 << 16)
        except OSError:  # the command has ended
            return
        if not data:
            return
        text = (left + data).decode(errors="ignore")
        left = (left + data)[len(text.encode()) :]
        yield text


def to_svg(frames: Sequence[Frame], most: int = 14) -> str:
    """An SVG that shows one screen after the other, again and again; ``most`` screens, spread evenly, and the last."""
    kept = [frames[number * (len(frames) - 1) // most] for number in range(most)] + [frames[-1]]
    whole = frames[-1][0] + _LAST_S
    width, height = COLUMNS * _WIDE + 2 * _SIDE, ROWS * _HIGH + _TOP + _SIDE
    ends = [at for at, _ in kept[1:]] + [whole]
    rules, groups = [], []
    for number, ((at, screen), end) in enumerate(zip(kept, ends, strict=True)):
        rules.append(_rule(number, at / whole, end / whole))
        groups.append(f'<g class="f f{number}">{"".join(_lines(screen))}</g>')
    style = _STYLE.format(ink=_INK, whole=whole, rules="".join(rules), last=len(kept) - 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">'
        f"<title>A terminal in which benchmark --demo runs</title><style>{style}</style>"
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="{_PAPER}"/>{_dots()}{"".join(groups)}</svg>\n'
    )


def _dots() -> str:
    """The three buttons of a window."""
    colors = enumerate(("#ff5f57", "#febc2e", "#28c840"))
    return "".join(f'<circle cx="{18 + 18 * n}" cy="18" r="5.5" fill="{each}"/>' for n, each in colors)


def _rule(number: int, start: float, end: float) -> str:
    steps = f"0%{{visibility:{'visible' if not number else 'hidden'}}}{100 * start:.2f}%{{visibility:visible}}"
    steps += f"{100 * end:.2f}%{{visibility:hidden}}" if end < 1 else ""
    return f"@keyframes k{number}{{{steps}}}.f{number}{{animation-name:k{number}}}"


def _lines(screen: Sequence[Sequence[tuple[str, Style]]]) -> Iterator[str]:
    for number, row in enumerate(screen):
        spans, column = [], 0
        for text, style in row:
            if text.strip():
                color = next((each for code, each in _COLORS.items() if code in style), "")
                marks = (f' fill="{color}"' if color else "") + (' font-weight="bold"' if "1" in style else "")
                place = f' x="{_SIDE + column * _WIDE:.1f}" textLength="{len(text) * _WIDE:.1f}"'
                spans.append(f"<tspan{place}{marks}>{escape(text)}</tspan>")
            column += len(text)
        if spans:
            yield f'<text y="{_TOP + 14 + number * _HIGH}" xml:space="preserve">{"".join(spans)}</text>'
