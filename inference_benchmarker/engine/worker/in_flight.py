"""Requests that are being sent, each until it is a record, and the open sessions that they are turns of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.record import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from inference_benchmarker.plan.pacing import Arrival
    from inference_benchmarker.plan.turn import Turn
    from inference_benchmarker.records.prompts import AnsweredTurn
    from inference_benchmarker.records.response import Response


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
        self.said: AnsweredTurn | None = None


class Slot:
    """One reusable request greenlet, and what is known of the request it is sending.

    Where clients try again: which ``attempt`` of its arrival it is, from 0 on; whether ``again`` to try after it, with
    the payload and label that are ``kept``; and the instants when the arrival was due, ``arrived``, ``until`` which all
    attempts may take, and when the next one is due. In a closed loop of users who think: the ``index`` of the arrival
    that it served last. Of a stream: how many of its first ``times`` were of reasoning, ``thought``. Of a session: the
    ``session`` that the request is a turn of, and the ``answer`` that it hears.
    """

    __slots__ = (
        "again",
        "answer",
        "arrival",
        "arrived",
        "attempt",
        "build_ns",
        "done",
        "failure",
        "greenlet",
        "handed",
        "index",
        "kept",
        "kind",
        "label",
        "next_due",
        "payload",
        "sent",
        "session",
        "size",
        "take",
        "thought",
        "times",
        "until",
        "usage",
    )

    def __init__(self, kind: int = 0) -> None:
        self.kind = kind
        self.greenlet: Any = None
        self.handed: Arrival | None = None
        self.take: Callable[[], Arrival | None]
        self.arrival: Arrival | None = None
        self.attempt = self.arrived = self.until = self.index = self.next_due = 0
        self.again = False
        self.kept: tuple[Any, int] | None = None
        self.session: OpenSession | None = None
        self.answer: Any = None
        self.begin(None, 0)

    def begin(self, arrival: Arrival | None, now: int) -> None:
        """Forget the last request; ``sent`` is stamped again when the payload is in hand."""
        self.arrival = arrival
        self.sent = self.done = now
        self.label = self.build_ns = self.thought = 0
        self.size = NONE
        self.payload: Any = None
        self.times: list[int] | None = None
        self.usage: Response | None = None
        self.failure: BaseException | None = None


class OneKind:
    """Sessions that any slot serves: there is one kind of slots."""

    kinds = 1

    def kind(self, index: int) -> int:  # noqa: ARG002 - one kind of slot serves every arrival
        """The kind of slot that serves this arrival."""
        return 0

    def closed_kinds(self, concurrency: int) -> list[int]:
        """The kind of each of a closed loop's slots."""
        return [0] * concurrency
