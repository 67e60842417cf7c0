"""The live view of a search: a line that says which rate is tried, and between which the answer seems to lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from inference_benchmarker.text import plain_lines
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.wave.spool_state import SpoolState

LINE_INTERVAL_NS = 10 * NS
_EMPTIED = "\r\x1b[K"


class SearchView:
    """``text``: the line of this moment. On a terminal it is overwritten, elsewhere written every ten seconds."""

    def __init__(self, text: Callable[[SpoolState, int], str], stream: TextIO, width: Callable[[], int] | None) -> None:
        self._text, self._stream, self._width = text, stream, width
        self._next_ns = 0
        self._shown = False

    def say(self, message: str) -> None:
        """A sentence about what happens now."""
        self.close()
        self._write(plain_lines(message) + "\n")

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        if self._width is not None:
            self._shown = True
            self._write(_EMPTIED + self._text(spool_state, now_ns)[: self._width() - 1])
        elif now_ns >= self._next_ns:
            self._next_ns = max(self._next_ns, now_ns) + LINE_INTERVAL_NS
            self._write(self._text(spool_state, now_ns) + "\n")

    def close(self) -> None:
        """Leave nothing in the line."""
        if self._shown:
            self._shown = False
            self._write(_EMPTIED)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
