"""The terminal on which somebody follows a wave in its pods: its words, its panel below them, and the keys for it."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.terminal import say, say_nothing, screen_here
from inference_benchmarker.cli.live.colours import CODES
from inference_benchmarker.cli.live.progress import is_line
from inference_benchmarker.words.redact import hidden
from inference_benchmarker.words.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inference_benchmarker.cli.live.keys import Keys
    from inference_benchmarker.cli.live.screen import Line, Piece, Screen
    from inference_benchmarker.engine.hosts.transport import Message

HOLD_S = 5.0
"""How often the wave hears that somebody can press keys, if nobody does."""

_MOST_LINES, _MOST_PIECES = 60, 100


class Onlooker:
    """Shows a wave elsewhere, and speaks to it. ``keys``: those of an interactive wave.

    Without a ``screen`` there are words alone, and lines on the wave's progress among them.
    """

    def __init__(self, tell: Callable[[str], None], screen: Screen | None = None, keys: Keys | None = None) -> None:
        self._tell, self._screen, self._keys = tell, screen, keys
        self._panel: list[Line] = []
        self._columns = 0
        self._held_s = 0.0

    def tell(self, line: str) -> None:
        """A line of the wave's, above its panel."""
        if self._screen is None:
            self._tell(line)
        elif not is_line(line):
            self._screen.clear()
            self._tell(line)
            self._draw()

    def show(self, lines: object) -> None:
        """The panel as it is now; what is none shows nothing."""
        self._panel = _lines_of(lines)
        self._draw()

    def asked(self, *, anew: bool) -> Iterator[Message]:
        """The messages for the wave now; ``anew``: on a new connection."""
        if self._screen is not None and ((columns := self._screen.size()[0]) != self._columns or anew):
            self._columns = columns
            yield {"do": "columns", "columns": columns}
        if self._keys is not None:
            pressed = self._pressed()
            if pressed or anew or time.monotonic() > self._held_s + HOLD_S:
                self._held_s = time.monotonic()
                yield {"do": "keys", "keys": pressed}

    def close(self) -> None:
        """Take the panel away."""
        if self._screen is not None:
            self._screen.clear()
            self._panel = []

    def _pressed(self) -> str:
        assert self._keys is not None
        try:
            return self._keys.pressed()
        except EOFError:  # its end is heard elsewhere, and the wave goes on
            self._keys = None
            return ""

    def _draw(self) -> None:
        if self._screen is not None and self._panel:
            self._screen.show(self._panel)
        elif self._screen is not None:
            self._screen.clear()


@contextmanager
def onlooking(*, quiet: bool, is_steered: bool) -> Iterator[Onlooker]:
    """The onlooker of this command. ``is_steered``: its terminal has the keys of an interactive wave."""
    from inference_benchmarker.cli.live.keys import Keys

    with Keys(sys.stdin.fileno()) if is_steered else nullcontext() as keys:
        onlooker = Onlooker(say_nothing if quiet else say, None if quiet else screen_here(), keys)
        try:
            yield onlooker
        finally:
            onlooker.close()


def _lines_of(found: object) -> list[Line]:
    """The lines of a panel, as far as they are some."""
    lines = islice(found, _MOST_LINES) if isinstance(found, list) else ()
    return [list(_pieces(islice(line, _MOST_PIECES))) for line in lines if isinstance(line, list)]


def _pieces(line: Iterable[object]) -> Iterator[Piece]:
    for piece in line:
        match piece:
            case [str(text), str(colour)]:
                yield plain(hidden(text)), colour if colour in CODES else ""
            case _:
                pass
