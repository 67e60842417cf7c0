"""The terminal of somebody who follows a wave in its pod from elsewhere: a panel to see, and keys to press."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from inference_benchmarker.engine.progress_listener import Several
from inference_benchmarker.system.files import opened, read_bytes, replace_file
from inference_benchmarker.system.followed import COLUMNS, KEYS, SCREEN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inference_benchmarker.cli.live.progress import PanelView, PlainView
    from inference_benchmarker.cli.live.screen import Line

AWAY_S = 600.0
"""Keys that nobody has held for so long are gone, as a terminal that was closed."""

_AGAIN_S = 0.3
_MOST = 64  # bytes of a number
_MOST_KEYS = 1024


class FarScreen:
    """A ``Screen`` for that terminal. A text that is printed goes another way: by the words of the wave."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next_s = 0.0

    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal as it was last; the rows are cut there."""
        with suppress(OSError, ValueError):
            return int(read_bytes(self._folder / COLUMNS, _MOST)), 100
        return 80, 100

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines in place of those before, now and then, and only if somebody sees them."""
        now = time.monotonic()
        if now >= self._next_s and (self._folder / COLUMNS).exists():
            self._next_s = now + _AGAIN_S
            self._write(lines)

    def print(self, text: str) -> None:
        """Nothing: it is among the words."""

    def clear(self) -> None:
        """Take away the lines that are shown."""
        self._write([])

    def _write(self, lines: Sequence[Line]) -> None:
        replace_file(self._folder / SCREEN, json.dumps(lines), is_lasting=False)


class FarView(Several):
    """Plain lines for the log of the pod, and the ``panel`` for whoever follows."""

    def __init__(self, folder: Path, plain: PlainView, panel: PanelView) -> None:
        super().__init__(plain, panel)
        self.folder, self.panel = folder, panel


class FarKeys:
    """The keys that are pressed there."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / KEYS
        self._at = 0
        self._held_at = time.monotonic()
        self._touched_ns = 0

    def pressed(self) -> str:
        """The keys since the last call. EOFError: nobody has held them for a long time."""
        with suppress(OSError):
            if (touched_ns := self._path.stat().st_mtime_ns) != self._touched_ns:
                self._touched_ns, self._held_at = touched_ns, time.monotonic()
                return self._read()
        if time.monotonic() > self._held_at + AWAY_S:
            raise EOFError
        return ""

    def _read(self) -> str:
        with opened(self._path) as file:
            file.seek(self._at)
            found = file.read(_MOST_KEYS)
        self._at += len(found)
        return found.decode("ascii", errors="replace")
