"""Stretches of a wave whose rate changes, a time at one rate each, counted in slices. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENT = "the client was the limit"
"""So the reason begins why a stretch counts for nothing in which this client could do no more."""


DRAIN, PAUSE = "drain", "pause"
"""Purposes of a time without load: until a backlog is gone; and for another search, which says nothing to this one."""
SHARED, AT_MOST = "shared", "at most"
"""Purposes of a rate that another search chose near its own answer, and of the highest that is allowed."""
SHARED_OVERLOAD = "shared overload"
"""Purpose of the overload with which another search ended, and of what came right after it: it says nothing here."""
NOTHING_VIOLATED = "no limit was clearly violated in the given time: give more with --time"
TOO_FEW = "violated no limit, but got too few requests to show that it meets them: give more with --time"


class Count(NamedTuple):
    """Of so many, how many were over a limit."""

    of: int
    over: int


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a stretch, about a second of it (seconds after wave start).

    While the wave runs, a slice has what was sent and what was answered within it; once it is over, what was due
    within it. ``answered``: over, whether well or not; ``counts``: one for each limit, in the search's order;
    ``spent_s``: the times of its answers, added up (seconds), 0 where they are not known.
    """

    start_s: float
    end_s: float
    sent: int
    answered: int
    counts: tuple[Count, ...]
    spent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time at one rate: stage ``number`` of the wave, ``rate`` in requests/s, seconds after wave start.

    ``purpose``: the reason why the search offered this rate. ``void``: why it counts for nothing, or empty.
    ``in_flight``: what was not answered when it ended. ``before``: the rate of the stretch before it, 0 for none;
    ``inherited``: what was not answered when it began. ``behind``: its requests show that the endpoint fell behind.
    """

    number: int
    rate: float
    start_s: float
    end_s: float
    slices: tuple[Slice, ...]
    purpose: str
    before: float = 0.0
    in_flight: int = 0
    void: str = ""
    inherited: int = 0
    behind: bool = False

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.start_s

    @property
    def answered(self) -> int:
        """The number of its answers, as far as they came."""
        return sum(part.answered for part in self.slices)

    @property
    def spent_s(self) -> float:
        """Their times, added up (seconds); 0 where they are not known."""
        return sum(part.spent_s for part in self.slices)

    @property
    def mean_s(self) -> float:
        """The mean time of its answers; 0 where there are none, or times are not known."""
        return self.spent_s / self.answered if self.answered else 0.0

    @property
    def completed(self) -> int:
        """The number of answers that came while it lasted, to whatever was sent before, too."""
        return self.inherited + sum(part.sent for part in self.slices) - self.in_flight

    @property
    def is_usable(self) -> bool:
        """Tells whether it counts: something was answered in it, and nothing made it void."""
        return not self.void and self.answered > 0

    @property
    def by_client(self) -> bool:
        """Tells whether it counts for nothing because this client could do no more."""
        return self.void.startswith(CLIENT)


def with_client(reason: str, stretches: Sequence[Stretch]) -> str:
    """The ``reason`` why a search has no answer; where it is the time, how much of it this client spoilt."""
    loads = [stretch for stretch in stretches if stretch.rate > 0]
    late = sum(stretch.by_client for stretch in loads)
    if reason != NOTHING_VIOLATED or not late:
        return reason
    return (
        f"no limit was clearly violated in the given time, and {CLIENT} in {late} of {len(loads)} stretches: run fewer "
        "other programs on it, or give more with --time"
    )


def most_of_client(stretches: Sequence[Stretch]) -> float | None:
    """The highest rate that the client could do, where the last one was too much for it.

    None where it was not, or where the client did more before: that is no limit, but a moment's disturbance.
    """
    running = stretches[-1]
    clean = max((stretch.rate for stretch in stretches if not stretch.void), default=0.0)
    return (clean or running.rate / 2) if running.by_client and clean < running.rate else None
