"""One session that is open in a worker: the user's generator, and the turn that it is at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.records.record import NONE

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from inference_benchmarker.plan.turn import Turn
    from inference_benchmarker.records.prompts import Said


class OpenSession:
    """An open session. ``number``: its arrival's. ``now``: its turn that is sent; None before there is one.

    ``turn`` is that one's number, from 1 on, ``think_ns`` what was thought before it. ``following`` is the turn after
    it, once the session has given it, at ``ready_ns``, with ``following_ns`` to think before. ``ended``: how it ended,
    as a packed turn has it. ``is_listening``: the session's own code has the answer and goes on. ``said``: its
    last turn that was answered, in blocks.
    """

    __slots__ = (
        "ended",
        "following",
        "following_ns",
        "is_listening",
        "now",
        "number",
        "ready_ns",
        "said",
        "steps",
        "think_ns",
        "turn",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.steps: Generator[Turn, Any, object] | None = None
        self.turn = 1
        self.think_ns = NONE
        self.now: Turn | None = None
        self.following: Turn | None = None
        self.following_ns = self.ready_ns = self.ended = 0
        self.is_listening = False
        self.said: Said | None = None
