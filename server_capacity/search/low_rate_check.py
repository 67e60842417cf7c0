"""A rate is an answer only where lower ones keep the limit: a share over that no rate makes less is no capacity. Pure.

Pauses that recur break a percentile at any rate. Each stretch alone may have too few requests to tell, and a fit that
knows queues only would follow them down. So what was counted at the answer's rate and below is taken together.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from server_capacity.search.answer import Answer
from server_capacity.search.pace import is_too_much, least_answer_s, pace_of
from server_capacity.search.points import Point, points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.blocks import UsersBlock
    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

BENEATH = "beneath"
"""The purpose of a stretch well below the answer."""
LEAST_OVER, LEAST_STRETCHES, CLEARLY = 8, 5, 2.5  # requests, stretches, and standard errors between them
LEAST_EXPECTED, LEAST_ALLOWED = 3.0, 0.01
WELL_BELOW, UNLIKELY, MOST_UNLIKELY = 0.75, 0.05, 0.002
"""Rates below so much of another are evidence of it; so small is the chance of as few over, were load not why.

Where the rate that parts them is chosen by what was counted, it must be much smaller.
"""
NOT_FAR, FURTHER = 4.0, 0.6
LEAST_BREAKING, COUNT_ERRORS = 3, 2.0
"""So many requests over are no accident of one; and the standard errors by which a count above is taken for more."""
UNDECIDED = "which does not decide it: give more with --time"
SLOWER = "give a lower --start-rps, or more with --time"
TOO_SMALL = 1e-12
"""A part of a chance that adds nothing to it."""
LEAST_TIMES, USUAL_TIMES = 30.0, 60.0
"""Such times of an answer must the load last to show anything, and should it last."""


class Broken(NamedTuple):
    """All stretches at ``rate`` and below break a limit together, with so large a share over."""

    rate: float
    share: float


def unsupported(limit: Limit, place: int, stretches: Sequence[Stretch], rate: float) -> Broken | None:
    """The lowest rate not far above ``rate`` up to which limit number ``place`` is broken by all stretches together.

    None where there is none, or what is well below ``rate`` had fewer over.
    """
    points = [point for point in points_of(stretches, place, pace_of(stretches)) if point.rate <= NOT_FAR * rate]
    broken = _broken_together(sorted(points, key=lambda point: point.rate), limit.allowed)
    if broken is None:
        return None
    low = [point for point in points if point.rate <= WELL_BELOW * rate]
    return None if _fewer(low, broken.share) or _kept(low, limit.allowed, broken.share) else broken


def beneath(limits: Sequence[Limit], stretches: Sequence[Stretch], name: str, rate: float) -> float | None:
    """A rate well below an answer, where it is not known yet whether the named limit is kept."""
    for place, limit in enumerate(limits):
        if limit.expression == name:
            points = points_of(stretches, place, pace_of(stretches))
            low = [point for point in points if point.rate <= WELL_BELOW * rate]
            return None if _fewer(low, limit.allowed) else FURTHER * rate
    return None


def with_support(limits: Sequence[Limit], stretches: Sequence[Stretch], found: Answer) -> Answer:
    """The answer, unless nothing tells that rates below it keep its limit.

    No rate keeps it only where lower rates are seen to break it, too; else nobody can tell.
    """
    for place, limit in enumerate(limits):
        rate = found.rate if limit.expression == found.limit else None
        if rate is None:
            continue
        points = whole_points(stretches, place)
        broken = unsupported(limit, place, stretches, rate)
        if broken is None and _is_fewer_below(points, rate, limit.allowed):
            continue
        open_ones = tuple(
            replace(each, rate=None, interval=None) if each.limit == found.limit else each for each in found.estimates
        )
        outcome, reason = _why_unsupported(limit, place, stretches, rate, broken)
        return Answer(outcome, limit=found.limit, reason=reason, estimates=open_ones)
    return found


def _why_unsupported(
    limit: Limit, place: int, stretches: Sequence[Stretch], rate: float, broken: Broken | None
) -> tuple[Literal["not_kept", "cannot_tell"], str]:
    """That no rate keeps a limit, or that nobody can tell, with the counts of a report."""
    points, allowed = whole_points(stretches, place), limit.allowed
    if broken is None:
        above = [point for point in points if point.rate > rate]
        text = f"{counts_text(f'{_lowest_of(above):.3g}/s and above', above, allowed, limit.expression)}; "
        return "cannot_tell", f"{text}{_lower_text(_below(points, rate))}"
    up_to = [point for point in points if point.rate <= broken.rate]
    low = [point for point in points if point.rate <= WELL_BELOW * rate] or _below(up_to, broken.rate)
    of, over = totals(low)
    clear = over >= LEAST_BREAKING and over > allowed * of and not _fewer(low, broken.share)
    calm = lower_rates(up_to, broken.rate, allowed, LEAST_EXPECTED * of / over) if clear else ""
    where = f"{broken.rate:.3g}/s and below"
    if clear and not calm and no_rate_meets(limit, place, stretches):
        return "not_kept", f"{counts_text(where, up_to, allowed)}, and a lower rate did not reduce it"
    return "cannot_tell", f"{counts_text(where, up_to, allowed, limit.expression)}; {calm or _lower_text(low)}"


def _below(points: Sequence[Point], rate: float) -> list[Point]:
    """Those well below a rate; where there are none, all up to it."""
    return [each for each in points if each.rate <= WELL_BELOW * rate] or [each for each in points if each.rate <= rate]


def _lower_text(points: Sequence[Point]) -> str:
    """The counts of lower rates, which do not decide it."""
    of, over = totals(points)
    highest = max((point.rate for point in points), default=0.0)
    return f"at {highest:.3g}/s and below {over:,} of {of:,} were, {UNDECIDED}" if of else SLOWER


def _lowest_of(points: Sequence[Point]) -> float:
    return min(point.rate for point in points)


def _is_fewer_below(points: Sequence[Point], rate: float, allowed: float) -> bool:
    """Tells whether fewer are over below a rate than above it, by more than chance: load may be why.

    Or, by much more, below any rate up to which the limit is met. What is far above tells little of a share that load
    does not cause.
    """
    near = [point for point in points if point.rate <= NOT_FAR * rate]
    near = near if any(point.rate > rate for point in near) else list(points)
    above = [point for point in near if point.rate > rate]
    if not above or _fewer(_below(near, rate), _share(above)):
        return True
    splits = (
        ([low for low in near if low.rate <= at], [high for high in near if high.rate > at]) for at in _rates(near)
    )
    return any(high and _share(low) <= allowed and _fewer(low, _share(high), MOST_UNLIKELY) for low, high in splits)


def _rates(points: Sequence[Point]) -> list[float]:
    return sorted({point.rate for point in points})


def _share(points: Sequence[Point]) -> float:
    """The share of all requests that are over."""
    of, over = totals(points)
    return over / of


def no_rate_meets(limit: Limit, place: int, stretches: Sequence[Stretch]) -> bool:
    """Tells whether load cannot be why requests are over a limit, so that a lower rate would not help.

    Either clearly more are over than may be and met another one, of which there are at most as many as are in flight on
    average; or at lower rates more are over than if the odds of it fell as fast as the rate. Where one busy server is
    why, they do; where requests wait, they fall faster.
    """
    pace = pace_of(stretches)
    points = points_of(stretches, place, pace)
    for rate in _rates(points):
        low = [point for point in points if point.rate <= rate]
        if breaking(low, min(1.0, limit.allowed + _in_flight(stretches, rate, pace.answer_s))):
            return True
    broken = lowest_breaking(points, limit.allowed)
    if broken is None:
        return False
    above = [point for point in points if broken < point.rate <= NOT_FAR * broken]
    return _unlike_load([point for point in points if point.rate <= broken], above)


def _in_flight(stretches: Sequence[Stretch], rate: float, answer_s: float) -> float:
    """The mean number of requests in flight as one meets it that is sent at ``rate`` or below."""
    some = [each for each in stretches if 0 < each.rate <= rate and not each.void]
    open_s = sum(each.rate * max(each.spent_s, each.rate * each.seconds * answer_s) for each in some)
    return open_s / sum(each.rate * each.seconds for each in some)


def _unlike_load(low: Sequence[Point], above: Sequence[Point]) -> bool:
    """Tells whether more are over at low rates than if the odds of it rose in proportion to the rate."""
    of, over = totals(above)
    if over < LEAST_OVER:
        return False
    most = over + COUNT_ERRORS * math.sqrt(over)
    if most >= of:
        return False
    odds = most / (of - most) * _mean_rate(low) / _mean_rate(above)
    low_of, low_over = totals(low)
    return low_over >= LEAST_BREAKING and 1.0 - _at_most(low_over - 1, low_of, odds / (1.0 + odds)) < MOST_UNLIKELY


def _mean_rate(points: Sequence[Point]) -> float:
    return sum(point.rate * point.of for point in points) / sum(point.of for point in points)


def if_long_enough(stretches: Sequence[Stretch], found: Answer) -> Answer:
    """The answer, unless the load lasted for few answers only: in that time no queue fills, whatever the rate."""
    answer_s = least_answer_s(stretches)
    load_s = sum(each.seconds for each in stretches if each.rate > 0 and not each.void)
    if found.outcome == "not_kept" or load_s >= LEAST_TIMES * answer_s or is_too_much(stretches, answer_s):
        return found
    minutes = math.ceil(USUAL_TIMES * answer_s / 60.0)
    reason = f"an answer takes {answer_s:.3g} s, and {load_s:.0f} s of load are too short for that: --time {minutes}m"
    estimates = tuple(replace(each, rate=None, interval=None, kept_everywhere=False) for each in found.estimates)
    return Answer("cannot_tell", limit=found.limit, reason=reason, estimates=estimates)


def lowest_breaking(points: Sequence[Point], allowed: float) -> float | None:
    """The lowest rate up to which all requests together break a limit; None where they break it nowhere."""
    rates = _rates(points)
    return next((rate for rate in rates if breaking([each for each in points if each.rate <= rate], allowed)), None)


def whole_points(stretches: Sequence[Stretch], place: int) -> list[Point]:
    """All requests of each stretch that counts, by limit number ``place``: as a report shows them."""
    valid = [each for each in stretches if each.rate > 0 and not each.void]
    counted = [(each.rate, [part.counts[place] for part in each.slices]) for each in valid]
    points = [Point(rate, sum(each.of for each in some), sum(each.over for each in some), ()) for rate, some in counted]
    return [point for point in points if point.of]


def undecided_at(limit: Limit, place: int, stretches: Sequence[Stretch]) -> str:
    """The lowest rate from which on more requests are over than may be, in words; empty where there is none.

    Each stretch alone may have too few of them to say that the limit is broken.
    """
    points = whole_points(stretches, place)
    for rate in _rates(points):
        there = [each for each in points if each.rate == rate]
        from_there = [each for each in points if each.rate >= rate]
        if too_many(there, limit) and too_many(from_there, limit):
            more = _excess(from_there, limit.allowed) > _excess(there, limit.allowed)
            where, some = (" and above", from_there) if more else ("", there)
            return counts_text(f"{rate:.3g}/s{where}", some, limit.allowed, limit.expression)
    return ""


def _excess(points: Sequence[Point], allowed: float) -> float:
    """The requests over a limit beyond those that may be, in times of what chance makes of so many."""
    of, over = totals(points)
    return (over - allowed * of) / math.sqrt(of)


def shown(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> float | None:
    """The highest rate from which on enough requests show every limit met; None where there are too few of them."""
    counted = [
        (limit.allowed, [(each.rate, each.of, each.over) for each in whole_points(stretches, place)])
        for place, limit in enumerate(limits)
    ]
    return shown_by(counted)


def shown_by(counted: Sequence[tuple[float, Sequence[tuple[float, int, int]]]]) -> float | None:
    """The same of the share that each limit allows, and of loads with their requests and how many were over."""
    found = [_shown(allowed, loads) for allowed, loads in counted]
    return min((load for load in found if load is not None), default=None) if None not in found else None


def lower_rates(points: Sequence[Point], rate: float, allowed: float, least: float = 1.0) -> str:
    """The highest lower rate at which, of so many at ``least``, no more are over than may be, in words; or nothing."""
    for lower in sorted({point.rate for point in points if point.rate < rate}, reverse=True):
        of, over = totals([point for point in points if point.rate == lower])
        if of >= least and over <= allowed * of:
            return f"at {lower:.3g}/s {over:,} of {of:,} were, {UNDECIDED}"
    return ""


def breaking(points: Sequence[Point | UsersBlock], allowed: float) -> bool:
    """Tells whether more requests are over than chance explains where the allowed share is."""
    of, over = totals(points)
    return over >= LEAST_BREAKING and 1.0 - _at_most(over - 1, of, allowed) < UNLIKELY


def totals(points: Sequence[Point | UsersBlock]) -> tuple[int, int]:
    """Of how many requests, how many were over."""
    return sum(point.of for point in points), sum(point.over for point in points)


def counts_text(where: str, points: Sequence[Point], allowed: float, name: str = "") -> str:
    """The count of requests over a limit at some rates; ``where``: these, in words; ``name``: the limit's."""
    of, over = totals(points)
    return (
        f"at {where} {over:,} of {of:,} requests ({100 * over / of:.3g}%) were over the limit{name and f' of {name}'}, "
        f"and {100 * allowed:g}% may be"
    )


def too_many(points: Sequence[Point], limit: Limit) -> bool:
    """Tells whether more are over than may be."""
    of, over = totals(points)
    return over > limit.allowed * of


def _shown(allowed: float, loads: Sequence[tuple[float, int, int]]) -> float | None:
    for load in sorted({load for load, _, _ in loads}, reverse=True):
        some = [counts for at, *counts in loads if at >= load]
        of, over = (sum(column) for column in zip(*some, strict=True))
        if of * max(allowed, LEAST_ALLOWED) >= LEAST_EXPECTED and over <= allowed * of:
            return load
    return None


def _broken_together(points: Sequence[Point], allowed: float) -> Broken | None:
    """By the spread between stretches, whose bursts are in it."""
    for count in range(LEAST_STRETCHES, len(points) + 1):
        some = points[:count]
        of, over = sum(point.of for point in some), sum(point.over for point in some)
        share = over / of
        spread = math.sqrt(sum((point.over - share * point.of) ** 2 for point in some) * count / (count - 1))
        if over >= LEAST_OVER and over - allowed * of > CLEARLY * spread:
            return Broken(some[-1].rate, share)
    return None


def _fewer(points: Sequence[Point], share: float, unlikely: float = UNLIKELY) -> bool:
    """Tells whether so few are over that they are fewer than this share of all, by more than chance."""
    of, over = totals(points)
    return over < share * of and _at_most(over, of, share) < unlikely


def _kept(points: Sequence[Point], allowed: float, share: float) -> bool:
    """Tells whether no more than is allowed are over, of so many that with this share some would have been."""
    of, over = totals(points)
    return over <= allowed * of and share * of >= LEAST_EXPECTED


def _at_most(count: int, of: int, share: float) -> float:
    """The chance of at most ``count`` of so many, of which each is one with the chance ``share``."""
    if share <= 0 or count >= of:
        return 1.0
    if count > share * of:  # of the others there are more than that
        return 1.0 - _at_most(of - count - 1, of, 1.0 - share)
    log = math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
    chance = total = math.exp(log + count * math.log(share) + (of - count) * math.log1p(-share)) if share < 1 else 0.0
    while count and chance > TOO_SMALL * total:
        chance *= count / (of - count + 1) * (1.0 - share) / share
        total, count = total + chance, count - 1
    return total
