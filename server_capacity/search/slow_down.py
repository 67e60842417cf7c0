"""An endpoint that gets slower with time: what came before tells nothing of the rate that lasts. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from server_capacity.search.answer import Answer
from server_capacity.search.pace import pace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

SLOWER = "the endpoint got slower with time"
"""The reason why a stretch before that counts for nothing."""
EQUAL, APART_S, LEAST_SENT = 1.03, 30.0, 100
"""Rates that differ by less are equal; so much later is another time; fewer requests tell nothing."""
FEW, MOST, GROWN = 0.01, 0.5, 0.1
"""Shares over a limit before and after, and the share of the later requests by which the backlog grew at least."""
CHANCE = 5.0  # standard errors
ENOUGH = 0.5  # of the usual time: credits that came back while it sent little are spent again by then
MORE_TIMES = 1.5
"""So many times its time is worth another try where the time that usually does was not enough."""


@dataclass(frozen=True, slots=True)
class At:
    """A stretch: its rate (requests/s), when it began (seconds after wave start), and its share over the limit."""

    rate: float
    start_s: float
    share: float


@dataclass(frozen=True, slots=True)
class Slower:
    """A rate went well ``before``, and the same or a lower one not any more ``after``.

    ``until_s``: the end of the last stretch that went well at a rate as high (seconds after wave start).
    """

    before: At
    after: At
    until_s: float


def slower(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> Slower | None:
    """The last rate that went well once and not any more; None where none did, or that rate went well again later."""
    found = (_slower(place, stretches) for place in range(len(limits)))
    return max((each for each in found if each is not None), key=lambda each: each.after.start_s, default=None)


def without_slow_down(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The stretches; those before the endpoint was seen to be slower are void."""
    seen = slower(limits, stretches)
    if seen is None:
        return tuple(stretches)
    return tuple(
        replace(each, void=SLOWER) if each.rate and not each.void and each.start_s < seen.after.start_s else each
        for each in stretches
    )


def lasts(settings: Settings, stretches: Sequence[Stretch]) -> bool:
    """Tells whether what came since the endpoint got slower is enough, if it did: half the load of a usual search."""
    return SLOWER not in {each.void for each in stretches} or _since_s(stretches) >= ENOUGH * _usual_s(
        settings, stretches
    )


def if_it_lasts(settings: Settings, stretches: Sequence[Stretch], found: Answer) -> Answer:
    """The answer, unless the endpoint got slower and what came since is too little to tell the rate that lasts."""
    before_s = _seconds(each for each in stretches if each.void == SLOWER)
    if not before_s:
        return found
    since_s, usual_s = _since_s(stretches), _usual_s(settings, stretches)
    fitted = any(each.limit == found.limit and each.slope is not None for each in found.estimates)
    if since_s >= usual_s or (found.outcome == "found" and fitted and lasts(settings, stretches)):
        return found
    needed_s = max(before_s + usual_s, MORE_TIMES * (settings.time_s or 0.0))
    reason = (
        f"{SLOWER}, and {since_s:.0f} s of load since then are too few to estimate the lasting rate: give --time "
        f"{math.ceil(needed_s / 60)}m"
    )
    estimates = tuple(replace(each, rate=None, interval=None, kept_everywhere=False) for each in found.estimates)
    return Answer("cannot_tell", limit=found.limit, reason=reason, estimates=estimates)


def _since_s(stretches: Sequence[Stretch]) -> float:
    """The load that counts since the endpoint got slower."""
    return _seconds(each for each in stretches if each.rate and not each.void)


def _usual_s(settings: Settings, stretches: Sequence[Stretch]) -> float:
    """The load of a search of such an endpoint that is given no time."""
    return replace(settings, time_s=None, precision=None).load_s(pace_of(stretches).answer_s)


def _slower(place: int, stretches: Sequence[Stretch]) -> Slower | None:
    """By the limit of that place."""
    clean = [(each, share) for each in stretches if (share := _share(each, place)) is not None]
    good = [(each, share) for each, share in clean if share <= FEW and _grown(each) < GROWN / 4]
    for after, much in reversed(clean):
        if much < MOST or _grown(after) < GROWN:
            continue
        as_high = [(each, few) for each, few in good if each.rate * EQUAL >= after.rate]
        if any(each.start_s > after.start_s for each, _ in as_high):
            continue
        told = [(each, few) for each, few in as_high if _clearly(each, after)]
        if told:
            before, few = min(told, key=lambda pair: pair[0].rate)
            until_s = max(each.end_s for each, _ in as_high)
            first, last = At(before.rate, before.start_s, few), At(after.rate, after.start_s, much)
            return Slower(first, last, until_s)
    return None


def _clearly(before: Stretch, after: Stretch) -> bool:
    """Tells whether more was completed long before, by more than chance, than when it was overloaded."""
    rates = [each.rate * (1.0 - _grown(each)) for each in (before, after)]
    error = math.sqrt(sum(max(rate, 0.0) / each.seconds for rate, each in zip(rates, (before, after), strict=True)))
    return after.start_s - before.end_s >= APART_S and rates[0] - rates[1] > CHANCE * error


def _grown(stretch: Stretch) -> float:
    """The requests by which a stretch let the backlog grow, over those that it sent.

    While it runs less is known to be sent than to be in flight: its rate tells.
    """
    return (stretch.in_flight - stretch.inherited) / max(1.0, stretch.rate * stretch.seconds)


def _sent(stretch: Stretch) -> int:
    return sum(part.sent for part in stretch.slices)


def _share(stretch: Stretch, place: int) -> float | None:
    """Of a stretch that counts and tells anything."""
    if not stretch.rate or stretch.void or _sent(stretch) < LEAST_SENT:
        return None
    of = sum(part.counts[place].of for part in stretch.slices)
    return sum(part.counts[place].over for part in stretch.slices) / of if of else None


def _seconds(stretches: Iterable[Stretch]) -> float:
    return sum(each.seconds for each in stretches)
