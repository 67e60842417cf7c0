"""One request's record: its instants and its outcome; and the ledger of all of a worker's. Pure.

All instants are nanoseconds after wave start on the host's one monotonic clock; warm-up lies below zero.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

OK, FAILED, ABANDONED = 0, 1, 2
OUTCOMES = ("ok", "failed", "abandoned")
NONE = -(1 << 63)  # stands for None in a packed int64
MAX_FINISH_REASONS = 31  # with "(other)", what the bits have room for
ENDINGS = ("completed", "failed", "raised")
"""The ways in which a session ends: its generator was done, a turn of it failed, or its own code raised."""
COMPLETED, TURN_FAILED, RAISED = 1, 2, 3  # in a packed turn; 0 where more is to come, or nobody saw the end
MOST_TURN = (1 << 16) - 1


class RequestRecord(NamedTuple):
    """The facts of one request: an arrival's first one, or a further ``attempt`` of a client that tries again.

    Derived times (latency, lag) are computed from them, never stored. Of a ``session``, whose number is its arrival's:
    its ``turn``, from 1 on; of the first attempt of each later one the time that its user thought before it; and, where
    the session ended with this request, one of ``ENDINGS``. ``first_answer``: of a stream that began with reasoning,
    when the first piece of its answer came.
    """

    index: int  # type: ignore[assignment]  # the place in the wave, not tuple.index
    worker: int
    due: int
    sent: int
    done: int
    outcome: str = "ok"
    label: str = ""
    error: str | None = None
    build_ns: int = 0
    first_token: int | None = None
    last_token: int | None = None
    chunks: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    bytes: int | None = None
    gaps: tuple[int, ...] | None = None
    finish_reason: str | None = None
    attempt: int = 0
    metrics: Mapping[str, float] | None = None
    session: int | None = None
    turn: int | None = None
    think_ns: int | None = None
    ended: str | None = None
    first_answer: int | None = None

    @property
    def context_tokens(self) -> int | None:
        """Of a turn: all that the model was given, the turns before it among it, as far as the server reported it."""
        return None if self.turn is None else self.tokens_in

    @property
    def place(self) -> tuple[int, int, int]:
        """Its place among all requests of a wave: by arrival, then by turn, then by attempt."""
        return self.index, self.turn or 0, self.attempt


_ALWAYS = frozenset(("scheduled", "sent", "dropped", "lost", "ok", "failed", "abandoned"))
_OF_SESSIONS = (
    "later_turns",
    "dropped_turns",
    "not_begun",
    "turns_unknown",
    "sessions_completed",
    "sessions_failed",
    "sessions_raised",
)


@dataclass(slots=True)
class Ledger:
    """A count of every arrival, by where it went.

    ``scheduled + later_turns + repeated = sent + dropped + lost`` and ``sent = ok + failed + abandoned + in_flight``:
    ``sent`` counts requests, ``repeated`` those that were not the first of their arrival's turn, ``later_turns`` the
    turns after the first that were sent. ``late_changes`` counts changes of the rate that a worker heard of when they
    were in force already, or not at all.

    Where arrivals are sessions: ``arrivals = sessions_completed + sessions_failed + sessions_raised + sessions_open``.
    Of turns that sessions had ready, ``dropped_turns`` found no slot. ``not_begun`` are those after a turn that failed
    or raised or found no slot, and those that the end of the wave left: as many as are known, since ``turns_unknown``
    of the sessions that broke off did not say how many followed.
    """

    scheduled: int = 0
    sent: int = 0
    dropped: int = 0
    lost: int = 0
    ok: int = 0
    failed: int = 0
    abandoned: int = 0
    late_changes: int = 0
    repeated: int = 0
    later_turns: int = 0
    dropped_turns: int = 0
    not_begun: int = 0
    turns_unknown: int = 0
    sessions_completed: int = 0
    sessions_failed: int = 0
    sessions_raised: int = 0

    @property
    def arrivals(self) -> int:
        """Arrivals of which at least one request was sent."""
        return self.turns - self.later_turns

    @property
    def turns(self) -> int:
        """Turns of which at least one request was sent; an arrival that is no session has one."""
        return self.sent - self.repeated

    @property
    def sessions_open(self) -> int:
        """Sessions that were begun and not seen to end."""
        return self.arrivals - self.sessions_completed - self.sessions_failed - self.sessions_raised

    @property
    def in_flight(self) -> int:
        """Sent and not yet over."""
        return self.sent - self.ok - self.failed - self.abandoned

    @property
    def completed(self) -> int:
        """Answered: ok or failed."""
        return self.ok + self.failed

    @property
    def balanced(self) -> bool:
        """Tells whether every scheduled arrival is accounted for."""
        balanced = self.scheduled == self.arrivals + self.dropped + self.lost and self.in_flight >= 0
        return balanced and self.later_turns >= 0 and self.sessions_open >= 0

    def end_session(self, ended: int, outcome: int) -> None:
        """Count a session that ended, as its packed turn says, and that turn by its outcome: both, or neither."""
        if ended == COMPLETED:
            self.sessions_completed, self.ok = self.sessions_completed + 1, self.ok + 1
        elif ended == TURN_FAILED:
            self.sessions_failed, self.failed = self.sessions_failed + 1, self.failed + 1
        elif outcome == OK:
            self.sessions_raised, self.ok = self.sessions_raised + 1, self.ok + 1
        else:
            self.sessions_raised, self.failed = self.sessions_raised + 1, self.failed + 1

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def to_json(self, *, sessions: bool = False) -> dict[str, int]:
        """The counts, in_flight included; those of ``sessions`` where arrivals are such, or any was counted."""
        of_sessions = sessions or any(getattr(self, name) for name in _OF_SESSIONS)
        names = [f.name for f in fields(self) if of_sessions or f.name not in _OF_SESSIONS]
        return {**{name: getattr(self, name) for name in names}, "in_flight": self.in_flight}

    @classmethod
    def from_json(cls, data: dict[str, int]) -> Ledger:
        """The ledger that ``to_json`` described; an older one lacks counts that it had none of."""
        return cls(**{f.name: data[f.name] if f.name in _ALWAYS else data.get(f.name, 0) for f in fields(cls)})
