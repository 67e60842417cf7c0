"""A view that may fail, and one that does not show what a wave waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.engine.progress_listener import PATIENCE_S, FaultTolerantView

if TYPE_CHECKING:
    from inference_benchmarker.wave.spool.spool_state import SpoolState


class Lines:
    """Keeps what it is to say."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Has nothing to close."""


def test_what_takes_long_is_said_now_and_then_where_it_is_not_shown() -> None:
    lines = Lines()
    view = FaultTolerantView(lines)
    for second in range(int(8 * PATIENCE_S)):
        view.starting(f"{second} s", float(second))
    first, second = int(PATIENCE_S), int(6 * PATIENCE_S)
    assert lines.said == [f"{first} s", f"{second} s"]
