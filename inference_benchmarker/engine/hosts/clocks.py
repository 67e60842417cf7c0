"""The clock of another host compared with ours, from exchanges of four time stamps: pure, but for who stamps them.

All instants are ns of the CLOCK_MONOTONIC of their host; an offset is what their clock shows minus what ours shows.
The formulas are those of NTP (RFC 5905, section 8). Nothing here changes a time that was measured: an offset, its
uncertainty and the drift are stored beside the times of a host, and whoever compares hosts uses them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

EXCHANGES = 32  # before the start and after the end; 200 find no better offset
FASTEST_DRIFT = 1e-3  # of two clocks against each other: each is corrected by at most 500 ppm (RFC 5905, section 11)
LEADS = 3  # round trips that a command is sent ahead of its effect


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer: ``asked`` and ``returned`` on our clock, ``heard`` and ``answered`` on theirs."""

    asked: int
    heard: int
    answered: int
    returned: int

    @property
    def round_trip_ns(self) -> int:
        """The time on the way, there and back; below 0 where their clock says that the answer took them longer."""
        return (self.returned - self.asked) - (self.answered - self.heard)

    @property
    def offset_ns(self) -> float:
        """Their clock minus ours, where both ways take the same time; never wrong by more than half the round trip."""
        return (self.lowest_ns + self.highest_ns) / 2

    @property
    def lowest_ns(self) -> int:
        """No offset below it is possible: the answer did not come before it was sent."""
        return self.answered - self.returned

    @property
    def highest_ns(self) -> int:
        """No offset above it is possible: the question was not heard before it was asked."""
        return self.heard - self.asked

    @property
    def at_ns(self) -> int:
        """The middle of the exchange on our clock."""
        return (self.asked + self.returned) // 2


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The offset of a host's clock over a wave, as a line: ``offset_ns`` at the instant ``at_ns`` of our clock.

    ``drift``: ns by which their clock gains on ours in each ns, None where there were exchanges at one time only.
    ``uncertainty_ns`` bounds the error of the line from the first exchange to the last one: in a wave without one after
    it, as of a host that was lost, the error at its end may be larger. ``jump_ns``: the largest step between
    neighbouring exchanges that no drift explains, 0 where there was none.
    """

    at_ns: int
    offset_ns: float
    uncertainty_ns: float
    drift: float | None
    round_trip_ns: int
    longest_round_trip_ns: int
    jump_ns: float

    def offset_at(self, ours_ns: int) -> float:
        """Their clock minus ours at an instant of ours."""
        return self.offset_ns + (self.drift or 0.0) * (ours_ns - self.at_ns)

    def theirs(self, ours_ns: int) -> int:
        """The instant of their clock at one of ours."""
        return round(ours_ns + self.offset_at(ours_ns))

    def ours(self, theirs_ns: int) -> float:
        """The instant of our clock at which theirs shows ``theirs_ns``."""
        drift = self.drift or 0.0
        return self.at_ns + (theirs_ns - self.at_ns - self.offset_ns) / (1 + drift)

    @property
    def lead_ns(self) -> int:
        """The time by which a command must be sent before its effect, so that it arrives in time."""
        return LEADS * self.longest_round_trip_ns


def best(exchanges: Sequence[Exchange]) -> Exchange:
    """The one with the least round trip, whose offset is bounded most closely. Raises ValueError for none."""
    return min(exchanges, key=lambda exchange: exchange.round_trip_ns)


def clock_offset(
    before: Sequence[Exchange], during: Sequence[Exchange] = (), after: Sequence[Exchange] = ()
) -> ClockOffset:
    """The offset from the exchanges before a wave and, once there are any, those during and after it.

    The line goes through the best exchange before and the best one after (until then, of the latest ones); its
    uncertainty is half the longer of their round trips, and as much as the line leaves what any exchange allows: one
    of less than no time allows nothing.
    Raises ValueError where there is no exchange before.
    """
    first = best(before)
    everything = [*before, *during, *after]
    last = best(after) if after else best(during[-EXCHANGES:]) if during else first
    elapsed = last.at_ns - first.at_ns
    line = ClockOffset(
        at_ns=first.at_ns,
        offset_ns=first.offset_ns,
        uncertainty_ns=max(first.round_trip_ns, last.round_trip_ns, 0) / 2,
        drift=_drift(last.offset_ns - first.offset_ns, elapsed) if elapsed > 0 else None,
        round_trip_ns=best(everything).round_trip_ns,
        longest_round_trip_ns=max(0, *(exchange.round_trip_ns for exchange in everything)),
        jump_ns=_jump_ns(everything),
    )
    excess = max(_excess_ns(line, exchange) for exchange in everything)
    return replace(line, uncertainty_ns=line.uncertainty_ns + excess)


def _drift(gained_ns: float, elapsed_ns: float) -> float:
    """The slope of a line, which is never steeper than clocks can be: it goes beyond the exchanges, too."""
    return max(-FASTEST_DRIFT, min(gained_ns / elapsed_ns, FASTEST_DRIFT))


def _excess_ns(line: ClockOffset, exchange: Exchange) -> float:
    """The distance of the line from what an exchange allows; 0 within."""
    offset = line.offset_at(exchange.at_ns)
    return max(exchange.lowest_ns - offset, offset - exchange.highest_ns, 0.0)


def _jump_ns(exchanges: Sequence[Exchange]) -> float:
    """The largest step of the offset between neighbours in time beyond their bounds and any drift."""
    in_time = sorted(exchanges, key=lambda exchange: exchange.at_ns)
    return max((_step_ns(one, other) for one, other in pairwise(in_time)), default=0.0)


def _step_ns(one: Exchange, other: Exchange) -> float:
    apart = max(other.lowest_ns - one.highest_ns, one.lowest_ns - other.highest_ns)
    return max(apart - FASTEST_DRIFT * (other.returned - one.asked), 0.0)
