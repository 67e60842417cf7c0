"""From the stretches of a search to the estimate of each limit, and to the answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.curve import Fit, fit
from server_capacity.search.pace import Pace, overloaded, pace_of
from server_capacity.search.points import points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.points import Point
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

KEEPS_UP = "keeps up"
FAR_BELOW = 0.35
SATURATED, SATURATED_TIMES = 0.3, 8.0


@dataclass(frozen=True, slots=True)
class Known:
    """Of one limit: the lowest rate at which it is clearly broken (None: nowhere), and the fit below it."""

    name: str
    broken_at: float | None
    highest_kept: float
    fit: Fit | None


def saturated(point: Point, allowed: float) -> bool:
    """Tells whether a share is so far over the limit that it says only that the rate is too high."""
    return point.over >= 8 and point.share > min(0.9, max(SATURATED, SATURATED_TIMES * allowed))


def overloads(stretches: Sequence[Stretch], pace: Pace) -> list[Stretch]:
    """Stretches that sent more than was completed."""
    return [
        stretch
        for before, stretch in pairwise((None, *stretches))
        if stretch and stretch.rate > 0 and not stretch.void and overloaded(before, stretch, pace.answer_s)
    ]


def known_of(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> list[Known]:
    """The knowledge of each limit, in their order, and of keeping up."""
    pace = pace_of(stretches)
    too_much = {stretch.number for stretch in overloads(stretches, pace)}
    calm = [stretch for stretch in stretches if stretch.number not in too_much]
    over_rates = [stretch.rate for stretch in stretches if stretch.number in too_much]
    ceiling = min(over_rates, default=None)
    kept_up = [stretch.rate for stretch in calm if stretch.rate > 0 and not stretch.void]
    found = [_known(limit, points_of(calm, place, pace), ceiling) for place, limit in enumerate(limits)]
    return [*found, _keeping_up(pace, ceiling, kept_up)]


def _known(limit: Limit, points: Sequence[Point], ceiling: float | None) -> Known:
    broken = [point.rate for point in points if saturated(point, limit.allowed)]
    broken_at = min([*broken, *([ceiling] if ceiling else [])], default=None)
    usable = [point for point in points if not saturated(point, limit.allowed)]
    kept = max((point.rate for point in usable if point.share <= limit.allowed), default=0.0)
    top = broken_at or max((point.rate for point in usable), default=0.0) * 1.3
    near = [point for point in usable if FAR_BELOW * top <= point.rate <= top]
    if broken_at is None and not any(point.share > limit.allowed for point in near):
        return Known(limit.expression, None, kept, None)
    return Known(limit.expression, broken_at, kept, fit(near, limit.allowed, top / 3, top * 1.02))


def _keeping_up(pace: Pace, ceiling: float | None, kept: Sequence[float]) -> Known:
    below = max((rate for rate in kept if ceiling is None or rate < ceiling), default=0.0)
    if pace.most is None or ceiling is None:
        return Known(KEEPS_UP, None, below, None)
    rate = min(pace.most, ceiling)
    low, high = min(max(below, 0.93 * rate), rate), min(1.05 * rate, ceiling)
    return Known(KEEPS_UP, ceiling, below, Fit(rate, Interval(low, high), (high - low) / 4 / rate, 60.0, 1.0))


def estimate_of(known: Known) -> Estimate:
    """The estimate that is reported."""
    if known.fit is None:
        return Estimate(known.name, kept_everywhere=known.broken_at is None)
    fitted = known.fit
    return Estimate(known.name, fitted.rate, fitted.interval, fitted.slope, fitted.dispersion)


def answer(limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch]) -> Answer:
    """The final one, from stretches whose slices were counted by due time."""
    known = known_of(limits, stretches)
    estimates = tuple(map(estimate_of, known))
    found = [estimate for estimate in estimates if estimate.rate is not None]
    tried = max((stretch.rate for stretch in stretches if not stretch.void), default=0.0)
    if found:
        lowest = min(found, key=lambda estimate: estimate.rate or 0.0)
        return Answer("found", lowest.rate, lowest.interval, lowest.limit, estimates=estimates)
    if settings.max_rps is not None and tried >= settings.max_rps * 0.999:
        reason = f"every limit is kept at the most that was allowed, {settings.max_rps:g}/s"
        return Answer("at_least", at_least=tried, reason=reason, estimates=estimates)
    return Answer("cannot_tell", at_least=tried or None, reason="no limit gave out in the time", estimates=estimates)
