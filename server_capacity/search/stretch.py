"""Stretches of a wave whose rate changes, a time at one rate each, counted in slices. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Count(NamedTuple):
    """Of so many, how many were over a limit."""

    of: int
    over: int


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a stretch, about a second of it (seconds after wave start).

    While the wave runs, a slice has what was sent and what was answered within it; once it is over, what was due
    within it. ``answered``: over, whether well or not; ``counts``: one for each limit, in the search's order.
    """

    start_s: float
    end_s: float
    sent: int
    answered: int
    counts: tuple[Count, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time at one rate: stage ``number`` of the wave, ``rate`` in requests/s, seconds after wave start.

    ``purpose``: the reason why the search offered this rate. ``void``: why it counts for nothing, or empty.
    ``in_flight``: what was not answered when it ended. ``before``: the rate of the stretch before it, 0 for none.
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

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.start_s
