"""An endpoint that gets slower with time: what came before does not show the rate that lasts. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from server_capacity.search.answer import Answer
from server_capacity.search.drift import drift_of
from server_capacity.search.pace import pace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

SLOWER = "the endpoint got slower with time"
"""The reason why a stretch before that counts for nothing."""
ENOUGH = 0.5  # of the usual time: credits that came back while it sent little are spent again by then
MORE_TIMES = 1.5
"""So many times its time is worth another try where the time that usually does was not enough."""


@dataclass(frozen=True, slots=True)
class At:
    """A stretch: its rate (requests/s), when it began (seconds after wave start), its share over the limit.

    ``mean_s``: the mean time of its answers.
    """

    rate: float
    start_s: float
    share: float
    mean_s: float


@dataclass(frozen=True, slots=True)
class Slower:
    """At the same or a lower rate answers took longer ``after`` than ``before``.

    ``until_s``: the end of the last stretch before the change; ``from_s``: the start of the first one after it (seconds
    after wave start).
    """

    before: At
    after: At
    until_s: float
    from_s: float


def slower(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> Slower | None:
    """The time from which on answers took longer than load explains; None where there is none."""
    drift = drift_of(limits, stretches)
    if drift is None:
        return None
    pair = drift.clearest()
    worst = max(range(len(limits)), key=lambda place: _share(pair[1].stretch, place) / max(limits[place].allowed, 1e-9))
    before, after = (
        At(each.stretch.rate, each.stretch.start_s, _share(each.stretch, worst), each.mean_s) for each in pair
    )
    return Slower(before, after, drift.before[-1].stretch.end_s, drift.after[0].stretch.start_s)


def without_slow_down(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The stretches; those before the endpoint was seen to be slower are void."""
    seen = slower(limits, stretches)
    return tuple(stretches) if seen is None else from_then_on(stretches, seen.from_s)


def from_then_on(stretches: Sequence[Stretch], from_s: float) -> tuple[Stretch, ...]:
    """The stretches; those that begin before ``from_s`` (seconds after wave start) are void."""
    return tuple(
        replace(each, void=SLOWER) if each.rate and not each.void and each.start_s < from_s else each
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


def _share(stretch: Stretch, place: int) -> float:
    """The share over the limit of that place."""
    of = sum(part.counts[place].of for part in stretch.slices)
    return sum(part.counts[place].over for part in stretch.slices) / of if of else 0.0


def _seconds(stretches: Iterable[Stretch]) -> float:
    return sum(each.seconds for each in stretches)
