"""From the stretches of a search to the estimate of each limit, and to the answer. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.curve import FINE, Fit, Prior, Sizes, fit
from server_capacity.search.pace import Pace, overloaded, pace_of
from server_capacity.search.points import points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.points import Point
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

KEEPS_UP = "keeps up"
LEAST_OVER = 8
REACH = 0.3  # of a fit to either side, in ln(rate)
NARROW = 1.3  # a bracket's ends, one over the other


@dataclass(frozen=True, slots=True)
class Known:
    """Of one limit: the highest rate that kept it below the lowest that clearly broke it, and a fit between them."""

    name: str
    kept: float
    broken: float | None
    fit: Fit | None

    @property
    def rate(self) -> float:
        """The best guess so far; infinite where nothing broke the limit."""
        if self.fit is not None:
            return self.fit.rate
        return math.inf if self.broken is None else math.sqrt(max(self.kept, self.broken / 4) * self.broken)


def is_time(limit: Limit) -> bool:
    """Tells whether a limit is on a time, which a backlog makes longer and longer."""
    return limit.metric not in ("success", "goodput")


def clearly_broken(point: Point, allowed: float) -> bool:
    """Tells whether so many are over that short bursts do not explain it."""
    expected = point.of * allowed
    return point.over >= LEAST_OVER and point.over > min(expected + 6.0 * math.sqrt(expected), 0.8 * point.of)


def known_of(limits: Sequence[Limit], stretches: Sequence[Stretch], sizes: Sizes = FINE) -> list[Known]:
    """The knowledge of each limit, in their order, and of keeping up."""
    pace = pace_of(stretches)
    counted = [stretch for stretch in stretches if stretch.rate > 0 and not stretch.void]
    ceiling = min((stretch.rate for stretch in counted if overloaded(stretch, pace.answer_s)), default=None)
    calm = [stretch.rate for stretch in counted if not overloaded(stretch, pace.answer_s)]
    found = [
        _known(limit, points_of(stretches, place, pace), pace, ceiling, sizes) for place, limit in enumerate(limits)
    ]
    return [*found, _keeping_up(pace, ceiling, calm)]


def _known(limit: Limit, points: Sequence[Point], pace: Pace, ceiling: float | None, sizes: Sizes) -> Known:
    """A limit is fitted as soon as its bracket is narrow."""
    breaking = [point.rate for point in points if clearly_broken(point, limit.allowed)]
    broken = min([*breaking, *([ceiling] if ceiling and is_time(limit) else [])], default=None)
    below = [point.rate for point in points if point.share <= limit.allowed and (not broken or point.rate < broken)]
    kept = max(below, default=0.0)
    if broken is None:
        return Known(limit.expression, kept, None, None)
    between = [point.rate for point in points if kept < point.rate < broken]
    if not between and kept * NARROW < broken:
        return Known(limit.expression, kept, broken, None)
    fitted = _fit(limit, points, pace, min(between, default=math.sqrt(kept * broken)), sizes)
    fitted = _fit(limit, points, pace, fitted.rate, sizes)
    return Known(limit.expression, kept, broken, fitted)


def _fit(limit: Limit, points: Sequence[Point], pace: Pace, centre: float, sizes: Sizes) -> Fit:
    """Of the points around a rate; what is far below it tells the share that is over without any wait."""
    low, high = centre * math.exp(-REACH), centre * math.exp(REACH)
    near = [point for point in points if low <= point.rate <= high]
    base = _base(points, limit.allowed, low)
    prior = Prior(limit.allowed, pace.most, pace.most_sd, is_time(limit), base)
    return fit(near, prior, centre * math.exp(-0.5), centre * math.exp(0.4), sizes)


def _base(points: Sequence[Point], allowed: float, below: float) -> float:
    """The share over at low rates, where enough requests tell; at most most of what is allowed."""
    of = sum(point.of for point in points if point.rate < below)
    over = sum(point.over for point in points if point.rate < below)
    return min(over / of, 0.7 * allowed) if of * allowed > 3 else 0.0


def _keeping_up(pace: Pace, ceiling: float | None, calm: Sequence[float]) -> Known:
    kept = max((rate for rate in calm if ceiling is None or rate < ceiling), default=0.0)
    if pace.most is None or ceiling is None:
        return Known(KEEPS_UP, kept, None, None)
    rate = max(min(pace.most, ceiling), kept)
    low, high = max(kept, rate * (1 - 2 * pace.most_sd)), min(ceiling, rate * (1 + 2 * pace.most_sd))
    return Known(KEEPS_UP, kept, ceiling, Fit(rate, Interval(low, max(high, rate)), pace.most_sd, 60.0, 1.0))


def lowest_of(known: Sequence[Known]) -> Known:
    """The limit that gives out first; keeping up is one where no other gives out."""
    *limits, keeping_up = known
    return min((each for each in limits if each.broken), key=lambda each: each.rate, default=keeping_up)


def estimate_of(known: Known) -> Estimate:
    """The estimate that is reported."""
    if known.broken is None:
        return Estimate(known.name, kept_everywhere=True)
    if known.fit is None:
        return Estimate(known.name, known.rate, Interval(known.kept, known.broken))
    fitted = known.fit
    return Estimate(known.name, fitted.rate, fitted.interval, fitted.slope, fitted.dispersion)


def answer(limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch]) -> Answer:
    """The final one, from stretches whose slices were counted by due time."""
    known = known_of(limits, stretches)
    estimates = tuple(map(estimate_of, known))
    lowest = estimate_of(lowest_of(known))
    tried = max((stretch.rate for stretch in stretches if not stretch.void), default=0.0)
    if lowest.rate is not None:
        return Answer("found", lowest.rate, lowest.interval, lowest.limit, estimates=estimates)
    if settings.max_rps is not None and tried >= settings.max_rps * 0.999:
        reason = f"every limit is kept at the most that was allowed, {settings.max_rps:g}/s"
        return Answer("at_least", at_least=tried, reason=reason, estimates=estimates)
    return Answer("cannot_tell", at_least=tried or None, reason="no limit gave out in the time", estimates=estimates)
