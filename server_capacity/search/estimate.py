"""From the stretches of a search to the estimate of each limit, and to the answer. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from server_capacity.search.answer import Answer, Estimate, Interval, Island, Memory
from server_capacity.search.curve import COARSE
from server_capacity.search.failing import unless_failing_since
from server_capacity.search.growth import known_from_below
from server_capacity.search.limit_bracket import KEEPS_UP, LimitBracket, clearly_broken, known_of, lowest_of
from server_capacity.search.low_rate_check import (
    SLOWER,
    UNDECIDED,
    breaking,
    counts_text,
    if_long_enough,
    lower_rates,
    lowest_breaking,
    no_rate_meets,
    shown,
    too_many,
    undecided_at,
    whole_points,
    with_support,
)
from server_capacity.search.pace import Pace, is_too_much, least_answer_s, overloaded, pace_of
from server_capacity.search.points import SATURATED, points_of
from server_capacity.search.retried_rate import without_accidents, without_warm_up
from server_capacity.search.slow_down import if_it_lasts, without_slow_down
from server_capacity.search.stretch import NOTHING_VIOLATED, TOO_FEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.points import Point
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

LEAST_OF_A_SIDE = 4
LEAST_EXPECTED, CLEARLY, WELL_ABOVE = 8.0, 0.7, 1.1
ALIKE, UNLIKELY = 0.2, 0.002
BEHIND = "at {:.3g}/s requests arrive faster than they are answered"


def estimate_of(bracket: LimitBracket) -> Estimate:
    """The estimate that is reported; of a step the rate is the one that was kept."""
    if bracket.broken is None or not bracket.kept:
        return Estimate(bracket.name, kept_everywhere=bracket.broken is None)
    if bracket.fit is None:
        rate = bracket.kept if bracket.step else bracket.rate
        return Estimate(bracket.name, rate, Interval(bracket.kept, bracket.broken))
    fitted = bracket.fit
    return Estimate(bracket.name, fitted.rate, fitted.interval, fitted.slope, fitted.dispersion)


def answer(limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch]) -> Answer:
    """The final one, from stretches whose slices were counted by due time."""
    counted = stretches
    lasting = without_slow_down(limits, without_warm_up(limits, stretches))
    stretches = without_accidents(limits, lasting)
    found = _without_undecided(limits, stretches, _answer(limits, settings, stretches, lasting))
    found = _unless_another_is_over(limits, stretches, with_support(limits, stretches, found))
    found = if_long_enough(stretches, if_it_lasts(settings, stretches, found))
    return unless_failing_since(limits, counted, found)


def _answer(
    limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], warm: Sequence[Stretch]
) -> Answer:
    """``warm``: the stretches and those that were no more than accidents; by them a server shows that it remembers."""
    known = known_from_below(limits, settings, stretches)
    found = _estimates(known, limits, settings, stretches)
    estimates = tuple(found)
    lowest = lowest_of(known)
    holding = found[known.index(lowest)]
    if holding.rate is None or holding.interval is None:
        return _without_rate(limits, known, settings, stretches, estimates)
    holding = min((each for each in found if each.interval is not None), key=lambda each: each.rate or math.inf)
    assert holding.rate is not None  # as every estimate with an interval has one
    assert holding.interval is not None
    rate, interval = holding.rate, holding.interval
    if holding.limit == KEEPS_UP:  # a limit on time is violated before, however well it is known where
        interval = Interval(min(each.interval.low for each in found if each.interval is not None), interval.high)
    memory = _overshot(limits, settings, warm, holding.limit)
    if memory is not None and memory.below.interval is not None:
        holding, interval = memory.below, memory.below.interval
        estimates = tuple(holding if each.limit == holding.limit else each for each in estimates)
        return Answer("found", holding.rate, interval, holding.limit, estimates=estimates, memory=memory)
    memory = _memory(limits, settings, stretches, holding)
    if memory is not None:
        sides = [interval, *(side.interval for side in (memory.below, memory.above) if side.interval is not None)]
        interval = Interval(min(side.low for side in sides), max(side.high for side in sides))
    islands = () if holding.limit == KEEPS_UP else _islands(limits, stretches, rate, interval.high)
    return Answer("found", rate, interval, holding.limit, estimates=estimates, islands=islands, memory=memory)


def _estimates(
    known: Sequence[LimitBracket], limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch]
) -> list[Estimate]:
    """Of each its estimate. A bracket of a search that ended early is no interval yet: one kept stretch may be luck."""
    found = list(map(estimate_of, known))
    if all(each.fit is not None or each.step or not each.kept or each.broken is None for each in known):
        return found
    fitted = known_of(limits, settings, stretches, narrow=math.inf)
    return [
        _widened(each, estimate_of(other)) if (of.kept, of.broken) == (other.kept, other.broken) else each
        for of, each, other in zip(known, found, fitted, strict=True)
    ]


def _widened(bracket: Estimate, fitted: Estimate) -> Estimate:
    """The bracket, as wide as a fit of it says at least."""
    if bracket.interval is None or fitted.interval is None or bracket.slope is not None:
        return bracket
    low, high = min(bracket.interval.low, fitted.interval.low), max(bracket.interval.high, fitted.interval.high)
    return Estimate(bracket.limit, fitted.rate, Interval(low, high))


def _without_rate(
    limits: Sequence[Limit],
    known: Sequence[LimitBracket],
    settings: Settings,
    stretches: Sequence[Stretch],
    estimates: tuple[Estimate, ...],
) -> Answer:
    lowest = _lowest_counted(known, stretches)
    if lowest.broken is not None:
        place = next((place for place, limit in enumerate(limits) if limit.expression == lowest.name), None)
        if place is None or not whole_points(stretches, place):
            reason = f"{BEHIND.format(lowest.broken)}: {SLOWER}"
            return Answer("cannot_tell", limit=lowest.name, reason=reason, estimates=estimates)
        outcome, reason = _broken_at(limits[place], place, stretches, lowest.broken)
        return Answer(outcome, limit=lowest.name, reason=reason, estimates=estimates)
    if not any(stretch.rate > 0 and stretch.is_usable for stretch in stretches):
        return Answer("cannot_tell", reason="every stretch was discarded", estimates=estimates)
    if is_too_much(stretches, least_answer_s(stretches)):
        lowest_rate = min(each.rate for each in stretches if each.rate > 0 and not each.void)
        return Answer("cannot_tell", reason=f"{BEHIND.format(lowest_rate)}: {SLOWER}", estimates=estimates)
    return _undecided(limits, stretches, estimates) or _unbroken(limits, settings, stretches, estimates)


def _lowest_counted(known: Sequence[LimitBracket], stretches: Sequence[Stretch]) -> LimitBracket:
    """The limit that is violated first; where requests have no value of it, another that is violated, if there is."""
    lowest, (*limits, _) = lowest_of(known), known
    if lowest not in limits or whole_points(stretches, limits.index(lowest)):
        return lowest
    counted = [each for place, each in enumerate(limits) if each.broken and whole_points(stretches, place)]
    return min(counted, key=lambda each: each.rate, default=lowest)


def _unbroken(
    limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], estimates: tuple[Estimate, ...]
) -> Answer:
    """At least what enough requests show, where the most that is allowed or that the client could do was tried."""
    most = max(stretch.rate for stretch in stretches if stretch.rate > 0 and stretch.is_usable)
    met, void = shown(limits, stretches), [each.void for each in stretches if each.by_client and each.rate > most]
    if settings.max_rps is not None and most >= settings.max_rps * 0.999:
        if met is None or met < settings.max_rps * 0.999:
            reason = f"{settings.max_rps:g}/s, the highest rate allowed, {TOO_FEW}"
            return Answer("cannot_tell", at_least=met, reason=reason, estimates=estimates)
        reason = f"every limit is met at the highest rate allowed, {settings.max_rps:g}/s"
        return Answer("at_least", at_least=most, reason=reason, estimates=estimates)
    if void:
        return Answer("cannot_tell" if met is None else "at_least", at_least=met, reason=void[-1], estimates=estimates)
    return Answer("cannot_tell", at_least=met, reason=NOTHING_VIOLATED, estimates=estimates)


def _undecided(limits: Sequence[Limit], stretches: Sequence[Stretch], estimates: Sequence[Estimate]) -> Answer | None:
    """That nobody can tell, where more requests are over a limit than may be, but too few to say that it is broken."""
    texts = {limit.expression: undecided_at(limit, place, stretches) for place, limit in enumerate(limits)}
    name = next((name for name, text in texts.items() if text), None)
    if name is None:
        return None
    place = next(place for place, limit in enumerate(limits) if limit.expression == name)
    if breaking(_lowest(whole_points(stretches, place)), limits[place].allowed):
        outcome, reason = _broken_at(limits[place], place, stretches)
        return Answer(outcome, limit=name, reason=reason, estimates=tuple(estimates))
    met, reason = shown(limits, stretches), f"{texts[name]}, {UNDECIDED}"
    return Answer("cannot_tell", limit=name, at_least=met, reason=reason, estimates=tuple(estimates))


def _without_undecided(limits: Sequence[Limit], stretches: Sequence[Stretch], found: Answer) -> Answer:
    """The answer, whose limits are met at every rate only if no step had more over than may be."""
    undecided = {limit.expression for place, limit in enumerate(limits) if undecided_at(limit, place, stretches)}
    listed = (
        replace(each, kept_everywhere=each.kept_everywhere and each.limit not in undecided) for each in found.estimates
    )
    return replace(found, estimates=tuple(listed))


def _lowest(points: Sequence[Point]) -> list[Point]:
    lowest = min((each.rate for each in points), default=0.0)
    return [each for each in points if each.rate == lowest]


def _unless_another_is_over(limits: Sequence[Limit], stretches: Sequence[Stretch], found: Answer) -> Answer:
    """The answer, unless a limit whose own rate is not known had more over than may be where it should be met."""
    if found.outcome != "found" or found.interval is None:
        return found
    for place, limit in enumerate(limits):
        estimate = next(each for each in found.estimates if each.limit == limit.expression)
        points = [each for each in whole_points(stretches, place) if each.rate <= found.interval.high]
        if estimate.rate is not None or estimate.kept_everywhere or not too_many(points, limit):
            continue
        if breaking(points, limit.allowed):
            outcome, reason = _broken_at(limit, place, stretches, max(each.rate for each in points))
            return Answer(outcome, limit=limit.expression, reason=reason, estimates=found.estimates)
        where = f"{max(each.rate for each in points):.3g}/s and below"
        reason = f"{counts_text(where, points, limit.allowed, limit.expression)}, {UNDECIDED}"
        return Answer("cannot_tell", limit=limit.expression, reason=reason, estimates=found.estimates)
    return found


def _broken_at(
    limit: Limit, place: int, stretches: Sequence[Stretch], broken: float = 0.0
) -> tuple[Literal["not_kept", "cannot_tell"], str]:
    """No rate keeps a limit, with the rate that broke it and its counts; unless lower ones may keep it."""
    allowed, points = limit.allowed, whole_points(stretches, place)
    rate = (
        lowest_breaking(points_of(stretches, place, pace_of(stretches)), allowed) or broken or _lowest(points)[0].rate
    )
    up_to = [each for each in points if each.rate <= rate] or points
    there = [each for each in up_to if each.rate == rate] or up_to
    lower = lower_rates(points, rate, allowed)
    if not lower and no_rate_meets(limit, place, stretches):
        tried = min(each.rate for each in stretches if each.rate > 0 and each.slices)
        where = ", the lowest rate tried," if rate <= tried else " and below"
        return "not_kept", counts_text(f"{rate:.3g}/s{where}", up_to, allowed)
    text = counts_text(f"{rate:.3g}/s", there, allowed, limit.expression)
    if not too_many(there, limit):
        pooled = counts_text(f"{rate:.3g}/s and below", up_to, allowed, limit.expression)
        text = pooled if too_many(up_to, limit) else BEHIND.format(rate)
    return "cannot_tell", f"{text}; {lower or f'a lower rate may meet it: {SLOWER}'}"


def _overshot(limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], name: str) -> Memory | None:
    """Of a server that the first rate too high changed: what growth said before, and what all later stretches say."""
    place = next((place for place, limit in enumerate(limits) if limit.expression == name), None)
    if place is None:
        return None
    growth = _end_of_growth(stretches, place, limits[place].allowed)
    if growth is None or not growth.kept or not growth.is_kept_later:
        return None
    above = next(estimate_of(each) for each in known_of(limits, settings, growth.later) if each.name == name)
    if above.rate is None or above.interval is None or above.slope is None or above.interval.low <= growth.broken.rate:
        return None
    share = growth.allowed * math.exp(above.slope * (growth.broken.rate / above.rate - 1.0))
    expected = growth.broken.of * max(growth.later_share, share)
    if expected > UNLIKELY * growth.broken.over:  # as many or more have at most this chance, by Markov's inequality
        return None
    interval = Interval(growth.kept, growth.broken.rate)
    return Memory(Estimate(name, math.sqrt(growth.kept * growth.broken.rate), interval), above)


@dataclass(frozen=True, slots=True)
class _EndOfGrowth:
    """The first rate that clearly broke a limit: ``broken``, with ``kept``, the highest below it that kept it before.

    ``later``: the stretches after it; ``of`` and ``over``: the requests in those at about that rate.
    """

    allowed: float
    broken: Point
    kept: float
    later: Sequence[Stretch]
    of: int
    over: int

    @property
    def later_share(self) -> float:
        """The share over of the requests at about that rate, later."""
        return self.over / self.of

    @property
    def is_kept_later(self) -> bool:
        """Tells whether the rate keeps the limit later, by enough requests to say so."""
        return self.of * self.allowed >= LEAST_EXPECTED and self.over <= CLEARLY * self.of * self.allowed


def _end_of_growth(stretches: Sequence[Stretch], place: int, allowed: float) -> _EndOfGrowth | None:
    """The end of growth, by the limit at that ``place``; None where no stretch clearly breaks it."""
    at_once = Pace()  # all counts: what a queue forgets later is seen here
    points = {each.number: points_of([each], place, at_once) for each in stretches}
    breaking = (at for at, each in enumerate(stretches) if _breaks(points[each.number], allowed))
    first = next((at for at in breaking if not _is_a_stall(stretches[at], place)), None)
    if first is None:
        return None
    [broken] = points[stretches[first].number]
    below = [point for each in stretches[:first] for point in points[each.number] if point.rate < broken.rate]
    kept = max((point.rate for point in below if point.share <= allowed), default=0.0)
    later = stretches[first + 1 :]
    again = [point for each in later for point in points[each.number] if _alike(point.rate, broken.rate)]
    return _EndOfGrowth(
        allowed, broken, kept, later, sum(point.of for point in again), sum(point.over for point in again)
    )


def _breaks(points: Sequence[Point], allowed: float) -> bool:
    return any(clearly_broken(point, allowed) for point in points)


def _is_a_stall(stretch: Stretch, place: int) -> bool:
    """Tells whether requests were over in one second only, and not most: that ends by itself, and changes no server."""
    counts = [part.counts[place] for part in stretch.slices]
    over = [count.over for count in counts if count.over]
    return len(counts) > len(over) == 1 and sum(over) < SATURATED * sum(count.of for count in counts)


def _alike(rate: float, other: float) -> bool:
    return abs(math.log(rate / other)) < ALIKE


def _memory(
    limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], holding: Estimate
) -> Memory | None:
    """The two rates of a server that remembers: stretches after lower rates say another one than those after higher."""
    near = [stretch for stretch in stretches if stretch.purpose in ("below", "above") and stretch.before > 0]
    sides = []
    for from_below in (True, False):
        side = [stretch for stretch in near if (stretch.before < stretch.rate) == from_below]
        if len(side) < LEAST_OF_A_SIDE:
            return None
        rest = [stretch for stretch in stretches if stretch not in near]
        known = known_of(limits, settings, sorted((*rest, *side), key=lambda stretch: stretch.number), COARSE)
        sides.append(next(estimate_of(each) for each in known if each.name == holding.limit))
    below, above = sides
    if below.interval is None or above.interval is None or below.slope is None or above.slope is None:
        return None  # a step's ends are no interval of what chance can do
    apart = below.interval.low > above.interval.high or above.interval.low > below.interval.high
    return Memory(below, above) if apart else None


def _islands(limits: Sequence[Limit], stretches: Sequence[Stretch], rate: float, above: float) -> tuple[Island, ...]:
    """Rates well above the answer's interval at which every limit was kept, with one between at which it was not."""
    pace = pace_of(stretches)
    kept: dict[float, bool] = {}
    for place, limit in enumerate(limits):
        for point in points_of(stretches, place, pace):
            clearly = point.of * limit.allowed >= LEAST_EXPECTED and point.share <= CLEARLY * limit.allowed
            kept[point.rate] = kept.get(point.rate, True) and clearly
    for stretch in stretches:
        if stretch.rate in kept and overloaded(replace(stretch, purpose=""), pace.answer_s):
            kept[stretch.rate] = False
    well_kept = {each: good and each > WELL_ABOVE * above for each, good in kept.items() if each > rate}
    runs = [(good, list(run)) for good, run in groupby(sorted(well_kept), key=lambda each: well_kept[each])]
    return tuple(Island(run[0], run[-1]) for place, (good, run) in enumerate(runs) if good and place)
