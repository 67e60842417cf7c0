"""Rates that growth cannot pass: more than is allowed are over there, though not clearly, however long it stays. Pure.

A limit that is broken by little, or for a while, is kept again at higher rates; growth would jump over such a band.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from server_capacity.search.curve import COARSE, FINE, Sizes
from server_capacity.search.limit_bracket import LimitBracket, fit_from, known_of, lowest_of, place_of_success
from server_capacity.search.pace import Pace, overloaded, pace_of
from server_capacity.search.points import points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.points import Point
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

LEAST_DOUBT = 4  # requests over that are no accident
PATIENCE_S, PATIENCE_ANSWERS = 12.0, 12.0
NEARLY = 0.7  # of what is allowed: growth stays; and is what ended it, though counted in the end it may be less
GROWTH = ("grow", "at most")
AROUND = ("bisect", "below", "above")
REACH = 0.3  # in ln(rate), of the points that are fitted, above
SERVES = 0.1  # in ln(rate), around the answer: as far away as a search's own stretches there
HOPELESS = 0.3  # the share over from which no higher rate is kept


def doubtful(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> float | None:
    """The lowest rate at which growth came near what is allowed, and has not stayed long enough to tell."""
    least_s = patience_s(stretches)
    near = {rate: _seconds(each) for rate, each in _grown(stretches).items() if _worst(limits, each, NEARLY)}
    return min((rate for rate, seconds in near.items() if seconds < least_s), default=None)


def patience_s(stretches: Sequence[Stretch]) -> float:
    """The seconds that growth stays at a rate that it cannot pass."""
    return max(PATIENCE_S, PATIENCE_ANSWERS * pace_of(stretches).answer_s)


def _grown(stretches: Sequence[Stretch]) -> dict[float, list[Stretch]]:
    """The stretches of each rate that growth tried, the last rate last."""
    grown: dict[float, list[Stretch]] = {}
    for stretch in stretches:
        if stretch.purpose == "grow" and stretch.rate > 0 and not stretch.void:
            grown[stretch.rate] = [*grown.pop(stretch.rate, []), stretch]
    return grown


def _seconds(stretches: Sequence[Stretch]) -> float:
    return sum(stretch.seconds for stretch in stretches)


def _worst(
    limits: Sequence[Limit], stretches: Sequence[Stretch], times: float = 1.0, least: int = LEAST_DOUBT
) -> Limit | None:
    """The limit of which most are over, in times of what is allowed; None where fewer than so many times."""
    worst, most = None, times
    for place, limit in enumerate(limits):
        counts = [part.counts[place] for stretch in stretches for part in stretch.slices]
        of, over = sum(count.of for count in counts), sum(count.over for count in counts)
        if over >= least and over > most * limit.allowed * of:
            worst, most = limit, over / (limit.allowed * of) if limit.allowed else math.inf
    return worst


def known_from_below(
    limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], sizes: Sizes = FINE
) -> list[LimitBracket]:
    """The knowledge of each limit and of keeping up; of what lies above a rate that growth could not pass, none."""
    known = known_of(limits, settings, stretches, sizes)
    limit, held = _held(limits, stretches)
    if limit is None:
        return known
    place = limits.index(limit)
    if known[place].broken is None or known[place].kept >= held:
        pace = pace_of(stretches, place_of_success(limits))
        points = [point for point in points_of(stretches, place, pace) if point.rate <= held * math.exp(REACH)]
        known[place] = _as_broken(limit, points, held, pace, sizes)
    return known


def _held(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> tuple[Limit | None, float]:
    """The rate at which growth ended and the limit that was the reason.

    What was counted live may differ a little from what is known in the end: that growth ended weighs more.
    """
    grown = _grown(stretches)
    if not grown:
        return None, 0.0
    held, last = list(grown.items())[-1]
    ended = any(stretch.number > last[-1].number and stretch.purpose in AROUND for stretch in stretches)
    if not ended and (_seconds(last) < patience_s(stretches) or not _worst(limits, last[-1:], 0.0, least=1)):
        return None, 0.0
    return _worst(limits, last, NEARLY if ended else 1.0), held


def _as_broken(limit: Limit, points: Sequence[Point], held: float, pace: Pace, sizes: Sizes) -> LimitBracket:
    """As if the limit were clearly broken at a rate."""
    kept = max((point.rate for point in points if point.rate < held and point.share <= limit.allowed), default=0.0)
    if not kept:
        return LimitBracket(limit.expression, kept, held, None)
    return LimitBracket(
        limit.expression, kept, held, fit_from(limit, points, pace, (kept, math.sqrt(kept * held)), sizes)
    )


def served_s(limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch]) -> float:
    """The load of another search's stretches that a search with these limits would have sent, too, and so need not.

    That is growth up to the rate that violates them, or may be tried; and what lies as near to the answer as its own
    stretches would.
    """
    lowest = lowest_of(known_from_below(limits, settings, stretches, COARSE))
    most = math.inf if lowest.broken is None else lowest.broken
    counted = [each for each in stretches if each.rate > 0 and not each.void]
    grown = [each for each in counted if each.purpose in GROWTH and each.rate <= most]
    low, high = lowest.rate * math.exp(-SERVES), lowest.rate * math.exp(SERVES)
    return _seconds(grown) + _seconds([each for each in counted if low <= each.rate <= high and each not in grown])


def beyond(limits: Sequence[Limit], stretches: Sequence[Stretch], times: float) -> float | None:
    """The rate above all that were tried, at which a limit could be kept again; None where that is hopeless."""
    pace = pace_of(stretches)
    counted = [stretch for stretch in stretches if stretch.rate > 0 and not stretch.void]
    highest = max(counted, key=lambda stretch: stretch.rate)
    if any(overloaded(stretch, pace.answer_s) for stretch in counted):
        return None
    shares = [point.share for place in range(len(limits)) for point in points_of([highest], place, pace)]
    return highest.rate * times if max(shares, default=1.0) < HOPELESS else None
