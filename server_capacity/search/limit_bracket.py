"""Of each limit the rates between which it is violated, and a fit there. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.search.answer import Interval
from server_capacity.search.curve import COARSE, FINE, Fit, Sizes, calibrated, fit
from server_capacity.search.pace import Pace, Saturation, flow_of, overloaded, pace_of, served_of
from server_capacity.search.points import points_of
from server_capacity.search.prior import Prior, slope_of_waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.points import Point
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

KEEPS_UP = "keeps up"
SERVED_SLOPE = 2.5  # its stretches from above are so far above that the endpoint is hardly ever idle
ERRORS = 2.3  # a few stretches tell their own spread less well
LEAST_OVER = 8
KEEPS_UP_SLOPE = 5.0  # its stretches from above are so far above that the backlog is seen to grow
REACH, LOW_REACH, MOST_REACH = 0.3, 0.1, 0.8  # of a fit to either side, in ln(rate); over the load, where it is low
STEEP_REACH = 2.2  # over the slope: there, of what waits, a ninth of the share allowed is over
TRIED, TRIED_SD = 1.1, 0.3  # a rate that saturates an endpoint over one at which not most are over
MANY_REFUSED, GOOD_SD = 0.1, 0.05
WAITED = ("response_time", "latency", "ttft")
LEAST_ROOM = 0.25  # of the bound
NONE_OVER = 10.0  # as many requests that may be over, of which none is: what is believed of a share at first
NARROW = 1.3  # a bracket's ends, one over the other
STEP_FROM, STEP_LOW, STEP_HIGH, LEAST_BETWEEN = 0.9, 0.1, 10.0, 3
OVER, EVEN, FAR_BELOW = 3.0, 1.6, 4.0  # standard errors, the most dispersion of chance, one rate over another


@dataclass(frozen=True, slots=True)
class LimitBracket:
    """Of one limit: the highest rate that kept it below the lowest that clearly broke it, and a fit between them.

    ``step``: nothing is over up to ``kept``, and most of all from ``broken`` on.
    """

    name: str
    kept: float
    broken: float | None
    fit: Fit | None
    step: bool = False

    @property
    def rate(self) -> float:
        """The best guess so far; infinite where nothing broke the limit."""
        if self.fit is not None:
            return self.fit.rate
        return math.inf if self.broken is None else math.sqrt(max(self.kept, self.broken / 4) * self.broken)


def place_of_success(limits: Sequence[Limit]) -> int | None:
    """The number of the limit on success, over which is what failed; None where there is none."""
    return next((place for place, limit in enumerate(limits) if limit.metric == "success"), None)


def is_time(limit: Limit) -> bool:
    """Tells whether a limit is on a time, which a backlog makes longer and longer."""
    return limit.metric not in ("success", "goodput")


def clearly_broken(point: Point, allowed: float) -> bool:
    """Tells whether so many are over that short bursts do not explain it."""
    expected = point.of * allowed
    return point.over >= LEAST_OVER and point.over > min(expected + 6.0 * math.sqrt(expected), 0.8 * point.of)


def known_of(
    limits: Sequence[Limit],
    settings: Settings,
    stretches: Sequence[Stretch],
    sizes: Sizes = FINE,
    narrow: float = NARROW,
) -> list[LimitBracket]:
    """The knowledge of each limit, in their order, and of keeping up. A bracket that is ``narrow`` is fitted."""
    even = settings.arrivals == "constant"
    pace = pace_of(stretches, place_of_success(limits))
    counted = [stretch for stretch in stretches if stretch.rate > 0 and not stretch.void]
    ceiling = min((stretch.rate for stretch in counted if overloaded(stretch, pace.answer_s)), default=None)
    calm = [stretch for stretch in counted if not overloaded(stretch, pace.answer_s)]
    found = []
    for place, limit in enumerate(limits):
        points = points_of(stretches, place, pace)
        bracket = _bracket(limit, points, ceiling)
        if even and is_step(points, limit.allowed, bracket):
            found.append(_step(bracket, counted))
        else:
            found.append(_fitted(limit, points, bracket, pace, sizes, narrow=narrow))
    served = served_of(stretches, pace, place_of_success(limits))
    if served is not None and any(map(is_time, limits)):  # near it waits are long, and its stretches are few
        served = served._replace(sd=max(served.sd, pace.count_sd))
    return [*found, _keeping_up(served, ceiling, calm)]


def _bracket(limit: Limit, points: Sequence[Point], ceiling: float | None) -> LimitBracket:
    breaking = [point.rate for point in points if clearly_broken(point, limit.allowed)]
    breaking = breaking or _broken_together(points, limit.allowed)
    broken = min([*breaking, *([ceiling] if ceiling and is_time(limit) else [])], default=None)
    calm = [point for point in points if not broken or point.rate < broken]
    if is_flat(calm, limit.allowed):
        return LimitBracket(limit.expression, 0.0, min(point.rate for point in points), None)
    below = [point.rate for point in calm if point.share <= limit.allowed]
    return LimitBracket(limit.expression, max(below, default=0.0), broken, None)


def _broken_together(points: Sequence[Point], allowed: float) -> list[float]:
    """The lowest rate up to which all stretches together clearly break a limit that none breaks alone."""
    of = over = 0
    for point in sorted(points, key=lambda point: point.rate):
        of, over = of + point.of, over + point.over
        if clearly_broken(replace(point, of=of, over=over), allowed):
            return [point.rate]
    return []


def is_flat(points: Sequence[Point], allowed: float) -> bool:
    """Tells whether more than is allowed are over far below the highest rate, too, and load is not why.

    Each stretch alone may have too few requests to tell. What waiting makes comes in bursts, and is not taken for it.
    """
    highest = max((point.rate for point in points), default=0.0)
    low = [point for point in points if FAR_BELOW * point.rate <= highest]
    of, over = sum(point.of for point in points), sum(point.over for point in points)
    low_of, low_over = sum(point.of for point in low), sum(point.over for point in low)
    if low_over < LEAST_OVER or low_over < low_of * allowed + OVER * math.sqrt(low_of * allowed):
        return False
    share = over / of
    return sum((point.over - share * point.of) ** 2 / (share * point.of) for point in points) <= EVEN * len(points)


def is_step(points: Sequence[Point], allowed: float, bracket: LimitBracket) -> bool:
    """Tells whether a share goes from nothing to far over the limit at once, as it can where arrivals are even."""
    if bracket.broken is None:
        return False
    around = [point for point in points if STEP_FROM * bracket.kept <= point.rate <= bracket.broken]
    between = sum(STEP_LOW * allowed < point.share < STEP_HIGH * allowed for point in around)
    return between < LEAST_BETWEEN and not any(
        point.rate > bracket.broken and point.share <= allowed for point in points
    )


def _step(bracket: LimitBracket, counted: Sequence[Stretch]) -> LimitBracket:
    """Of a step: more than was completed cannot be kept for long, even where the backlog is short still."""
    flows = [flow_of(stretch) for stretch in counted if stretch.rate <= bracket.kept]
    completed = max((flow.completed_rate for flow in flows if flow is not None), default=bracket.kept)
    return replace(bracket, kept=min(bracket.kept, completed), step=True)


def _fitted(
    limit: Limit, points: Sequence[Point], bracket: LimitBracket, pace: Pace, sizes: Sizes, *, narrow: float
) -> LimitBracket:
    """A limit is fitted as soon as its bracket is narrow, or a rate within it is neither kept nor clearly broken."""
    kept, broken = bracket.kept, bracket.broken
    if broken is None or not kept:
        return bracket
    between = [point.rate for point in points if kept < point.rate < broken]
    if not between and kept * narrow < broken:
        return bracket
    guess = min(between, default=math.sqrt(kept * broken))
    return replace(bracket, fit=fit_from(limit, points, pace, (kept, guess), sizes))


def fit_from(limit: Limit, points: Sequence[Point], pace: Pace, around: tuple[float, float], sizes: Sizes) -> Fit:
    """The fit around the rate that a coarse one finds; ``around``: a rate that is kept, and a guess."""
    kept, guess = around
    centre = _fit_near(limit, points, pace, (kept, guess), COARSE).rate
    found = _fit_near(limit, points, pace, (kept, centre), sizes)
    settled = _settled(found, points, pace) if is_time(limit) else found
    return calibrated(settled, pace.answers_in(sum(point.seconds for point in points)))


def _settled(found: Fit, points: Sequence[Point], pace: Pace) -> Fit:
    """Lower by what no stretch was long enough to tell: near saturation a queue that began empty still grows."""
    load, low = pace.settled_load(max(point.seconds for point in points)), found.interval.low
    if pace.most is None or low < load * pace.most * (1.0 - pace.count_sd):
        return found
    return replace(found, interval=replace(found.interval, low=low * load))


def _fit_near(limit: Limit, points: Sequence[Point], pace: Pace, around: tuple[float, float], sizes: Sizes) -> Fit:
    """Of the points around a rate and one that is kept; what is far below tells the share over without any wait."""
    kept, centre = around
    most, most_sd = _saturated(limit, points, pace)
    prior = Prior(limit.allowed, most, most_sd, is_time(limit), 0.0, _room_s(limit, pace))
    below, above = _reach(prior, centre)
    low, high = min(kept, centre * math.exp(-below)), max(kept, centre * math.exp(above))
    near = [point for point in points if low <= point.rate <= high]
    prior = replace(prior, base=_base(points, limit.allowed, low))
    return fit(near, prior, centre * math.exp(-0.5), centre * math.exp(0.4), sizes)


def _reach(prior: Prior, centre: float) -> tuple[float, float]:
    """The reach of a fit below and above a rate, in ln(rate): wider where load is low, less where the curve is steep.

    Far below, nearly all that is over has not waited.
    """
    if prior.most is None or not prior.bursty:
        return REACH, REACH
    reach = min(max(REACH, LOW_REACH * prior.most / centre), MOST_REACH)
    slope = float(slope_of_waits(prior.allowed, prior.load(np.array([centre])))[0])
    return min(reach, STEEP_REACH / slope), reach


def _saturated(limit: Limit, points: Sequence[Point], pace: Pace) -> tuple[float | None, float]:
    """The rate at which the endpoint is saturated and its relative sd: as completed, or as not refused where many are.

    Where that is not known it is more or less the highest rate at which not most were over.
    """
    if is_time(limit):
        tried = max((point.rate for point in points if point.share < 0.5), default=points[0].rate)
        return (pace.most, pace.most_sd) if pace.most is not None else (TRIED * tried, TRIED_SD)
    good = [point.rate * (1.0 - point.share) for point in points if point.share > MANY_REFUSED]
    return (max(good), GOOD_SD) if good else (None, 0.0)


def _room_s(limit: Limit, pace: Pace) -> float:
    """So long a request may wait until it is over a limit; 0 where waiting is not what the limit is on."""
    if limit.bound_s is None or limit.metric not in WAITED:
        return 0.0
    return max(limit.bound_s - pace.answer_s, limit.bound_s * LEAST_ROOM)


def _base(points: Sequence[Point], allowed: float, below: float) -> float:
    """The share over at low rates, as far as requests show that it is not 0; at most most of what is allowed."""
    of = sum(point.of for point in points if point.rate < below)
    over = sum(point.over for point in points if point.rate < below)
    return min(over / (of + NONE_OVER / allowed), 0.7 * allowed) if allowed else 0.0


def _keeping_up(served: Saturation | None, ceiling: float | None, calm: Sequence[Stretch]) -> LimitBracket:
    """From the rate served when overloaded."""
    kept = max((stretch.rate for stretch in calm if ceiling is None or stretch.rate < ceiling), default=0.0)
    if served is None or ceiling is None:
        return LimitBracket(KEEPS_UP, kept, None, None)
    rate, sd = served
    fitted = Fit(rate, Interval(rate / (1 + ERRORS * sd), rate * (1 + ERRORS * sd)), sd, SERVED_SLOPE, 1.0)
    return LimitBracket(KEEPS_UP, min(kept, rate), ceiling, fitted)


def lowest_of(known: Sequence[LimitBracket]) -> LimitBracket:
    """The limit that is violated first; keeping up is one where no other is violated."""
    *limits, keeping_up = known
    return min((each for each in limits if each.broken), key=lambda each: each.rate, default=keeping_up)
