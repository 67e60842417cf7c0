"""The live view of a search: a line that says which rate is tried, and between which the answer seems to lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from inference_benchmarker.words.text import plain_lines
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.cli.live.screen import Screen
    from inference_benchmarker.wave.spool.spool_state import SpoolState

    Text = Callable[[SpoolState, int], str]
    """The line of this moment."""

LINE_INTERVAL_NS = 10 * NS


class SearchView:
    """Keeps the line up to date on a terminal."""

    def __init__(self, text: Text, screen: Screen) -> None:
        self._text = text
        self._screen = screen

    def starting(self, what: str, _: float) -> None:
        """A wave has not begun."""
        self._screen.show([[(what, "")]])

    def say(self, message: str) -> None:
        """A sentence about what happens now."""
        self._screen.print(message)

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        self._screen.show([[(self._text(spool_state, now_ns), "")]])

    def close(self) -> None:
        """Take the line away."""
        self._screen.clear()


class SearchLines:
    """Writes the line every ten seconds, where there is no terminal."""

    def __init__(self, text: Text, stream: TextIO) -> None:
        self._text = text
        self._stream = stream
        self._next_ns = 0

    def say(self, message: str) -> None:
        """A sentence about what happens now."""
        self._stream.write(plain_lines(message) + "\n")
        self._stream.flush()

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        if now_ns >= self._next_ns:
            self._next_ns = max(self._next_ns, now_ns) + LINE_INTERVAL_NS
            self.say(self._text(spool_state, now_ns))

    def close(self) -> None:
        """Nothing to close."""
