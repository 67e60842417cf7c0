"""A rate is an answer only where lower ones keep the limit: a share over that no rate makes less is no capacity. Pure.

Pauses that recur break a percentile at any rate. Each stretch alone may have too few requests to tell, and a fit that
knows queues only would follow them down. So what was counted at the answer's rate and below is taken together.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from server_capacity.search.answer import Answer
from server_capacity.search.pace import is_too_much, pace_of
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
WELL_BELOW, UNLIKELY = 0.75, 0.05
"""Rates below so much of another are evidence of it; so small is the chance of as few over, were load not why."""
NOT_FAR, FURTHER = 4.0, 0.6
ONE_AT_A_TIME = 0.5
"""Requests in flight at a rate, on average, at which hardly any waits for another."""
LEAST_BREAKING = 3
"""So many requests over are no accident of one."""
UNDECIDED = "which does not decide it: give more with --time"
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
        if rate is not None and (broken := unsupported(limit, place, stretches, rate)):
            open_ones = tuple(
                replace(each, rate=None, interval=None) if each.limit == found.limit else each
                for each in found.estimates
            )
            points = [point for point in points_of(stretches, place, pace_of(stretches)) if point.rate <= broken.rate]
            lower = ([point for point in points if point.rate <= WELL_BELOW * of] for of in (rate, broken.rate))
            low = next((some for some in lower if some), [])
            whole = [point for point in whole_points(stretches, place) if point.rate <= broken.rate]
            text = counts_text(f"{broken.rate:.3g}/s and below", whole, limit.allowed)
            of, over = totals(low)
            clear = over >= LEAST_BREAKING and over > limit.allowed * of and not _fewer(low, broken.share)
            calm = lower_rates(whole, broken.rate, limit.allowed, LEAST_EXPECTED * of / over) if clear else ""
            if clear and not calm:
                reason = f"{text}, and a lower rate did not reduce it"
                return Answer("not_kept", limit=found.limit, reason=reason, estimates=open_ones)
            reason = f"{text}; {calm or f'at lower rates {over:,} of {of:,} were, {UNDECIDED}'}"
            return Answer("cannot_tell", limit=found.limit, reason=reason, estimates=open_ones)
    return found


def if_long_enough(stretches: Sequence[Stretch], found: Answer) -> Answer:
    """The answer, unless the load lasted for few answers only: in that time no queue fills, whatever the rate."""
    answer_s = pace_of(stretches).answer_s
    load_s = sum(each.seconds for each in stretches if each.rate > 0 and not each.void)
    if found.outcome == "not_kept" or load_s >= LEAST_TIMES * answer_s or is_too_much(stretches, answer_s):
        return found
    minutes = math.ceil(USUAL_TIMES * answer_s / 60.0)
    reason = f"an answer takes {answer_s:.3g} s, and {load_s:.0f} s of load are too short for that: --time {minutes}m"
    estimates = tuple(replace(each, rate=None, interval=None, kept_everywhere=False) for each in found.estimates)
    return Answer("cannot_tell", limit=found.limit, reason=reason, estimates=estimates)


def lowest_breaking(points: Sequence[Point], allowed: float) -> float | None:
    """The lowest rate up to which all requests together break a limit; None where they break it nowhere."""
    rates = sorted({point.rate for point in points})
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
    for rate in sorted({point.rate for point in points}):
        there = [each for each in points if each.rate == rate]
        if _too_many(there, limit) and _too_many([each for each in points if each.rate >= rate], limit):
            return counts_text(f"{rate:.3g}/s", there, limit.allowed)
    return ""


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
    return over >= LEAST_BREAKING and 1.0 - _at_most(over - 1, allowed * of) < UNLIKELY


def totals(points: Sequence[Point | UsersBlock]) -> tuple[int, int]:
    """Of how many requests, how many were over."""
    return sum(point.of for point in points), sum(point.over for point in points)


def counts_text(where: str, points: Sequence[Point], allowed: float) -> str:
    """The count of requests over a limit at some rates; ``where``: these, in words."""
    of, over = totals(points)
    return (
        f"at {where} {over:,} of {of:,} requests ({100 * over / of:.3g}%) were over the limit, and "
        f"{100 * allowed:g}% may be"
    )


def _too_many(points: Sequence[Point], limit: Limit) -> bool:
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


def _fewer(points: Sequence[Point], share: float) -> bool:
    """Tells whether so few are over that they are fewer than this share of all, by more than chance."""
    of, over = sum(point.of for point in points), sum(point.over for point in points)
    expected = share * of
    return over < expected and _at_most(over, expected) < UNLIKELY


def _kept(points: Sequence[Point], allowed: float, share: float) -> bool:
    """Tells whether no more than is allowed are over, of so many that with this share some would have been."""
    of, over = sum(point.of for point in points), sum(point.over for point in points)
    return over <= allowed * of and share * of >= LEAST_EXPECTED


def _at_most(count: int, mean: float) -> float:
    """The chance of at most ``count``, of a Poisson number."""
    if mean <= 0:
        return 1.0
    logs = (number * math.log(mean) - math.lgamma(number + 1) - mean for number in range(count + 1))
    return min(1.0, sum(math.exp(log) for log in logs))
