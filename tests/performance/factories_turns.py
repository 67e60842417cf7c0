"""Sessions of five turns: each turn's payload is a number of its own, and think times differ by session and turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker import Turn
from tests.performance.factories_http import invoke_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["invoke_factory", "session_factory"]
TURNS = 5
NUMBERS = 8  # that a session has for its payloads


def session_factory() -> Callable[[int], Iterator[Turn]]:
    """Sessions that think 0 to 0.4 s between two turns."""

    def session(number: int) -> Iterator[Turn]:
        for turn in range(1, TURNS + 1):
            yield Turn(b"%d" % (number * NUMBERS + turn), think_s=(number * 7 + turn * 13) % 401 / 1000)

    return session
