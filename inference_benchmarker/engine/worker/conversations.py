"""Sessions of several turns: the user's generator says what is sent, hears each answer, and thinks in between.

A session that thinks has no slot: it is known by the number of its arrival, and its next turn is an arrival of that
number, due when it was answered and has thought.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.worker.in_flight import OneKind, OpenSession
from inference_benchmarker.engine.worker.requests import Requests
from inference_benchmarker.engine.worker.sent_prompts import SentPrompts
from inference_benchmarker.plan.turn import Turn as SessionTurn
from inference_benchmarker.records.error_cause import causes
from inference_benchmarker.records.error_key import error_text
from inference_benchmarker.records.record import COMPLETED, MOST_TURN, RAISED, TURN_FAILED
from inference_benchmarker.words.redact import excerpt
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.engine.worker.requests import Attempt, Turn
    from inference_benchmarker.plan.think import Think

logger = logging.getLogger("inference_benchmarker.sessions")


class SessionError(Exception):
    """A session that is none: it has no turn, yields something else, or has too many."""


class TurnRequests(Requests):
    """A worker's requests that are turns of sessions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prompts = SentPrompts()
        self.sessions: dict[int, OpenSession] = {}  # those that are open, by number

    def unreported(self) -> dict[str, Any]:
        """The prompts that sessions sent since ``mark_reported``, in blocks."""
        return self.prompts.unreported()

    def mark_reported(self) -> None:
        """Forget what `unreported` returned: a report has it."""
        self.prompts.mark_reported()

    def note_before(self, payloads: Sequence[Any]) -> None:
        """Know of these that they were sent before the load."""
        self.prompts.note_before(payloads)

    def note(self, number: int, error: BaseException) -> None:
        """Keep the text of an error of a session's own, beside those of failed requests."""
        _, key = self.writer.error(error, causes(error))
        self._on_failure(number, key, error)

    def break_off(self, session: OpenSession) -> None:
        """Count the turns that a session is not to begin, as far as it said how many there are."""
        if session.number < 0:
            return
        following = session.following
        last = session.now if following is None else following
        self.ledger.not_begun += following is not None
        if last is None or last.left is None:
            self.ledger.turns_unknown += 1
        else:
            self.ledger.not_begun += last.left

    def abandon(self) -> None:
        """End the books; an answer that its session hears just now has come, and is none of the abandoned."""
        for session in self.sessions.values():
            self.break_off(session)
        self.close()
        heard = [slot for slot in self.slots if slot.session is not None and slot.session.is_listening]
        for slot in heard:
            arrival, slot.arrival = slot.arrival, None
            if arrival is not None:
                self._record(slot, arrival)
        super().abandon()


class Conversations(OneKind):
    """Sessions of the user's, which any slot serves, a turn at a time.

    Whoever schedules sets ``later``, which is given each next turn as its due time and the number of its session, and
    ``on_end``, called with the number of a session that is over.
    """

    def __init__(self, session: Callable[[int], Any], requests: TurnRequests, seed: int, think: Think | None) -> None:
        self.requests: TurnRequests = requests
        self.later: Callable[[int, int], None] = lambda due, number: None  # noqa: ARG005 - nobody schedules
        self.on_end: Callable[[int], None] = lambda number: None  # noqa: ARG005 - nobody schedules
        self._session = session
        self._seed = seed
        self._think = think
        self._open = requests.sessions
        self._turn: Turn
        self._attempt: Attempt
        requests.hear = self._hear

    def send_by(self, turn: Turn, attempt: Attempt) -> None:
        """The way in which turns are sent."""
        self._turn, self._attempt = turn, attempt

    def serve(self, slot: Slot) -> None:
        """Send one turn after the other, of whichever session an arrival says."""
        take, turn, attempt, requests, open_one = slot.take, self._turn, self._attempt, self.requests, self._open.get
        ledger, later = requests.ledger, self.later
        while (arrival := take()) is not None:
            session = open_one(arrival.index) or self._opened(arrival.index)
            slot.session = session
            if session.following is not None:
                session.turn += 1
                session.now, session.following = session.following, None
                session.think_ns = session.following_ns
                if arrival.index >= 0:
                    ledger.later_turns += 1
            turn(slot, arrival, attempt)
            if session.following is not None and not requests.is_over:
                later(slot.done + session.following_ns, session.number)
            else:
                self._end(session)

    def payload(self, slot: Slot) -> Any:
        """The payload of a slot's turn. The time of the session's own code that made it late is the building's."""
        session, arrival = slot.session, slot.arrival
        assert session is not None
        assert arrival is not None
        if session.steps is None:
            self._begin(session, slot)
        elif session.turn > 1 and not slot.attempt and (late_ns := session.ready_ns - arrival.due) > 0:
            slot.build_ns = late_ns
        now = session.now
        assert now is not None
        payload, _, label, _ = now
        if label is not None:
            slot.label = self.requests.writer.labels[label]
        return payload

    def cut(self, number: int) -> None:
        """The next turn of a session that thinks is not begun: the wave is over."""
        self._end(self._open[number])

    def drop(self, number: int) -> None:
        """The next turn of a session found no slot, and it does not go on."""
        session = self._open[number]
        session.now, session.following = session.following, None
        self.requests.ledger.dropped_turns += number >= 0
        self._end(session)

    def _opened(self, number: int) -> OpenSession:
        """A new session, which begins with this arrival."""
        session = self._open[number] = OpenSession(number)
        self.requests.waiting += 1
        return session

    def _begin(self, session: OpenSession, slot: Slot) -> None:
        """Have the user's generator say the first turn."""
        begun = monotonic_ns()
        try:
            session.steps = self._session(session.number)
            now = next(session.steps)
            _check(session, now)
            session.now = now
        except StopIteration:
            raise SessionError("the session ended without a turn") from None
        finally:
            slot.build_ns = monotonic_ns() - begun

    def _end(self, session: OpenSession) -> None:
        del self._open[session.number]
        self.requests.waiting -= 1
        if session.ended != COMPLETED:  # else its generator is done
            if self.requests.open:  # else it was broken off when the books ended
                self.requests.break_off(session)
            _close(session)
        self.on_end(session.number)

    def _hear(self, slot: Slot) -> None:
        """A turn is over: the session hears the answer and says what it sends next, or ends."""
        session, answer = slot.session, slot.answer
        assert session is not None
        if slot.failure is not None:
            slot.answer = None
            if not slot.again:
                session.ended = RAISED if session.now is None else TURN_FAILED
            return
        assert session.steps is not None
        session.is_listening = True  # from here on no end of the drain takes the request for one without an answer
        self.requests.prompts.add(slot, session)  # as it was sent, before the session changes it
        slot.answer = None
        try:
            following = session.steps.send(answer)
            if following.__class__ is not SessionTurn or session.turn >= MOST_TURN:
                _check(session, following)
            session.following = following
        except StopIteration:
            session.ended = COMPLETED
        except BaseException as error:  # the session's own: it is recorded as such, and no worker ends of it
            session.ended = RAISED
            with suppress(MemoryError):  # that may be what it raised: the turn is recorded without its words
                self.requests.note(session.number, error)
        else:
            think_s = following.think_s
            session.following_ns = self._drawn_ns(session) if think_s is None else round(think_s * NS)
        finally:
            session.is_listening = False
        session.ready_ns = monotonic_ns() - self.requests.t0

    def _drawn_ns(self, session: OpenSession) -> int:
        """The time thought before the next turn, where it does not say so: it depends on seed, session and turn."""
        return 0 if self._think is None else self._think.ns(self._seed, session.number * (MOST_TURN + 1) + session.turn)


def _check(session: OpenSession, given: Any) -> None:
    """Raise SessionError for what is no turn, or is one too many."""
    if not isinstance(given, SessionTurn):
        raise SessionError(f"the session yielded a {type(given).__name__}; expected Turn(payload)")
    if session.turn >= MOST_TURN:
        raise SessionError(f"the session has more than {MOST_TURN:,} turns")


def _close(session: OpenSession) -> None:
    """Let the session's own code clean up behind it."""
    if session.steps is None:
        return
    try:
        session.steps.close()
    except BaseException as error:
        with suppress(BaseException):
            logger.warning("session %d raised when it was closed: %s", session.number, excerpt(error_text(error), 200))
