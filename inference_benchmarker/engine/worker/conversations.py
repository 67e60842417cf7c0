"""Sessions of several turns: the user's generator says what is sent, hears each answer, and thinks in between.

A session that thinks has no slot: it is known by the number of its arrival, and its next turn is an arrival of that
number, due when it was answered and has thought.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.worker.open_session import OpenSession
from inference_benchmarker.engine.worker.requests import Requests
from inference_benchmarker.engine.worker.sent_prompts import SentPrompts
from inference_benchmarker.engine.worker.slot import OneKind
from inference_benchmarker.plan.turn import Turn as SessionTurn
from inference_benchmarker.records.error_cause import causes
from inference_benchmarker.records.error_key import error_text
from inference_benchmarker.records.record import COMPLETED, MOST_TURN, NONE, RAISED, TURN_FAILED
from inference_benchmarker.words.redact import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.worker.requests import Attempt, Turn
    from inference_benchmarker.engine.worker.slot import Slot
    from inference_benchmarker.plan.pacing import Arrival
    from inference_benchmarker.plan.think import Think

logger = logging.getLogger("inference_benchmarker.sessions")


class SessionError(Exception):
    """A session that is none: it has no turn, yields something else, or has too many."""


class TurnRequests(Requests):
    """A worker's requests that are turns of sessions.

    ``hear`` lets a slot's session go on before the record of its turn is written, which says whether it ended.
    """

    hear: Callable[[Slot], None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prompts = SentPrompts()

    def take_new(self) -> dict[str, Any]:
        """The prompts that sessions sent since the last call, in blocks."""
        return self._prompts.take_new()

    def note(self, number: int, error: BaseException) -> None:
        """Keep the text of an error of a session's own, beside those of failed requests."""
        _, key = self.writer.error(error, causes(error))
        self._on_failure(number, key, error)

    def abandon(self) -> None:
        """End the books; an answer that its session hears just now has come, and is none of the abandoned."""
        self.open = False
        heard = [slot for slot in self.slots if slot.session is not None and slot.session.is_listening]
        for slot in heard:
            arrival, slot.arrival = slot.arrival, None
            if arrival is not None:
                super()._record(slot, arrival)
        super().abandon()

    def _record(self, slot: Slot, arrival: Arrival) -> None:
        if slot.failure is None and slot.session is not None:
            self._prompts.add(slot, slot.session)  # as it was sent, before the session changes it
        self.hear(slot)  # which may take its time
        if self.open:
            super()._record(slot, arrival)

    def _write(self, slot: Slot, arrival: Arrival, outcome: int, error: int = 0) -> None:
        """Write which turn of its session it is, too, and into the books how the session ended."""
        session = slot.session
        assert session is not None
        super()._write(slot, arrival, outcome, error)
        self.writer.add_turn(session.turn, NONE if slot.attempt else session.think_ns, session.ended)
        if arrival.index >= 0 and session.ended:
            self.ledger.end_session(session.ended)


class Conversations(OneKind):
    """Sessions of the user's, which any slot serves, a turn at a time.

    Whoever schedules sets ``later``, which is given each next turn as its due time and the number of its session, and
    ``on_end``, called when a session is over.
    """

    def __init__(self, session: Callable[[int], Any], requests: TurnRequests, seed: int, think: Think | None) -> None:
        self.requests: TurnRequests = requests
        self.later: Callable[[int, int], None] = lambda due, number: None  # noqa: ARG005 - nobody schedules
        self.on_end: Callable[[], None] = lambda: None
        self._session = session
        self._seed = seed
        self._think = think
        self._open: dict[int, OpenSession] = {}
        self._turn: Turn
        self._attempt: Attempt
        requests.hear = self._hear

    def send_by(self, turn: Turn, attempt: Attempt) -> None:
        """The way in which turns are sent."""
        self._turn, self._attempt = turn, attempt

    def serve(self, slot: Slot) -> None:
        """Send one turn after the other, of whichever session an arrival says."""
        take, turn, attempt = slot.take, self._turn, self._attempt
        while (arrival := take()) is not None:
            session = slot.session = self._taken_up(arrival.index)
            turn(slot, arrival, attempt)
            if session.following is not None and not self.requests.is_over:
                self.later(slot.done + session.following_ns, session.number)
            else:
                self._end(session)

    def payload(self, slot: Slot) -> Any:
        """The payload of a slot's turn. The time of the session's own code that made it late is the building's."""
        session, arrival = slot.session, slot.arrival
        assert session is not None
        assert arrival is not None
        if session.steps is None:
            begun = monotonic_ns()
            try:
                session.steps = self._session(session.number)
                session.now = self._checked(session, next(session.steps))
            except StopIteration:
                raise SessionError("the session ended without a turn") from None
            finally:
                slot.build_ns = monotonic_ns() - begun
        elif session.turn > 1 and not slot.attempt:
            slot.build_ns = max(0, session.ready_ns - arrival.due)
        assert session.now is not None
        if session.now.label is not None:
            slot.label = self.requests.writer.labels[session.now.label]
        return session.now.payload

    def cut(self, number: int) -> None:
        """The next turn of a session that thinks is not begun: the wave is over."""
        self._end(self._open[number])

    def drop(self, number: int) -> None:
        """The next turn of a session found no slot, and it does not go on."""
        session = self._open[number]
        session.following = None
        self.requests.ledger.dropped_turns += number >= 0
        self._end(session)

    def _taken_up(self, number: int) -> OpenSession:
        """The session of an arrival that a slot serves now: a new one, or one that goes on."""
        session = self._open.get(number)
        if session is None:
            session = self._open[number] = OpenSession(number)
            self.requests.waiting += 1
        else:
            session.go_on()
            self.requests.ledger.later_turns += number >= 0
        return session

    def _end(self, session: OpenSession) -> None:
        del self._open[session.number]
        self.requests.waiting -= 1
        if session.following is not None:
            self.requests.ledger.not_begun += session.number >= 0
        _close(session)
        self.on_end()

    def _hear(self, slot: Slot) -> None:
        """A turn is over: the session hears the answer and says what it sends next, or ends."""
        session, answer = slot.session, slot.answer
        slot.answer = None
        assert session is not None
        if slot.failure is not None:
            if not slot.again:
                session.ended = RAISED if session.now is None else TURN_FAILED
            return
        assert session.steps is not None
        session.is_listening = True
        try:
            session.following = self._checked(session, session.steps.send(answer))
        except StopIteration:
            session.ended = COMPLETED
        except BaseException as error:  # the session's own: it is recorded as such, and no worker ends of it
            session.ended = RAISED
            self.requests.note(session.number, error)
        else:
            think_ns = session.following.think_ns
            session.following_ns = self._drawn_ns(session) if think_ns is None else think_ns
        finally:
            session.is_listening = False
        session.ready_ns = monotonic_ns() - self.requests.t0

    def _drawn_ns(self, session: OpenSession) -> int:
        """The time thought before the next turn, where it does not say so: it depends on seed, session and turn."""
        return 0 if self._think is None else self._think.ns(self._seed, session.number * (MOST_TURN + 1) + session.turn)

    @staticmethod
    def _checked(session: OpenSession, given: Any) -> SessionTurn:
        if not isinstance(given, SessionTurn):
            raise SessionError(f"the session yielded a {type(given).__name__}; expected Turn(payload)")
        if session.turn >= MOST_TURN:
            raise SessionError(f"the session has more than {MOST_TURN:,} turns")
        return given


def _close(session: OpenSession) -> None:
    """Let the session's own code clean up behind it."""
    if session.steps is None:
        return
    try:
        session.steps.close()
    except BaseException as error:
        with suppress(BaseException):
            logger.warning("session %d raised when it was closed: %s", session.number, excerpt(error_text(error), 200))
