"""The process that started the primary: it gives the commands, and learns what happens."""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

logger = logging.getLogger("inference_benchmarker.engine.primary")


class Parent:
    """Speaks with the parent: lines come from it, JSON lines go to it. ``is_gone`` once its lines have ended."""

    def __init__(self, lines: Iterable[bytes], status_fd: int) -> None:
        self._lines = lines
        self._status_fd = status_fd
        self.is_gone = False

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command as it comes, a word and what follows it, until the parent is gone."""
        for line in self._lines:
            word, _, rest = line.decode().strip().partition(" ")
            yield word, rest
        self.is_gone = True
        _print_to_nobody()

    def tell(self, event: str, **facts: Any) -> None:
        """Report to the parent, if it is still there."""
        try:
            os.write(self._status_fd, json.dumps({"event": event, **facts}).encode() + b"\n")
        except BrokenPipeError:
            logger.warning("the parent is gone")


def _print_to_nobody() -> None:
    """Whoever took what this process prints is gone; a log line must not end what is left to do."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
