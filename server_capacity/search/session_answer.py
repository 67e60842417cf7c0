"""From stretches of sessions to each limit's bracket and fit, and to the answer. Pure.

Turns of one session are no independent requests: the unit of randomness is a block of a few session lengths, and the
sessions in it.
"""

from __future__ import annotations

import math
from collections import Counter
from statistics import geometric_mean
from typing import TYPE_CHECKING

from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.blocks import SMALL_CHANGE, blocks_of, joined, unsettled, whole_blocks
from server_capacity.search.crossing import Crossing, crossing
from server_capacity.search.keeping_up import SLOWER, rate_kept_up
from server_capacity.search.recovery import from_above, from_below, length_at, with_overload
from server_capacity.search.users import NARROW, UserBracket, clearly_over, undecided, unless_undecided, unviolated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.blocks import UsersBlock
    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

LEFT_OUT_SMALL, LEFT_OUT_LARGE = 1.0, 2.0
BLOCK_LENGTHS, LEAST_BLOCK_S = 2.0, 2.0
NEAR = 0.35
WIDER = (2.15, 1.0)
"""Times an interval's lower and upper part: found on simulated searches.

Most searches see fewer of the rare long bursts than there are, so they err upwards.
"""
WIDER_OF_REQUESTS = (1.8, 1.2)
"""The same of requests whose answers are generated, which do not come together in sessions."""
SLOPE_SPREAD = 1.2
"""Turns that are over by their own length are so at any rate: the share rises by less than that of like requests."""
ALONE = 0.3
"""Sessions open at a time on average: a rate at which hardly any meets another."""


def known(
    limits: Sequence[Limit],
    stretches: Sequence[Stretch],
    session_s: float,
    wider: tuple[float, float] = WIDER,
    slower: float = SLOWER,
) -> list[UserBracket]:
    """The knowledge of each limit, from below, and of keeping up where no limit is broken at a lower rate."""
    stretches = from_below(stretches)
    found = [known_of(limit, place, stretches, session_s, wider) for place, limit in enumerate(limits)]
    keeping_up = rate_kept_up(limits, stretches, session_s, slower)
    lowest = min((each.users for each in found), default=math.inf)
    return [*found, keeping_up] if keeping_up.broken is None or keeping_up.broken <= lowest else found


def known_of(
    limit: Limit, place: int, stretches: Sequence[Stretch], session_s: float, wider: tuple[float, float] = WIDER
) -> UserBracket:
    """The knowledge of limit number ``place``; it is fitted once its bracket was narrow, without what only grew."""
    cut = [(stretch, _cut(stretch, place, session_s)) for stretch in stretches if stretch.rate > 0 and not stretch.void]
    counted = [block for _, blocks in cut for block in blocks if block.of] or whole_blocks(stretches, place)
    short = unsettled(stretches, place, counted)
    points = joined([*counted, *(each for each in short if clearly_over(each.of, each.over, limit.allowed))])
    points = [each for each in points if each.of]  # where nothing was sent, no limit was met
    breaking = [point.users for point in points if clearly_over(point.of, point.over, limit.allowed)]
    broken = min(breaking, default=None)
    below = [each.users for each in points if each.share <= limit.allowed and (broken is None or each.users < broken)]
    kept = max(below, default=0.0)
    settled = [block for stretch, blocks in cut if stretch.purpose != "grow" for block in blocks]
    near = near_rates(stretches)
    if broken is None or not settled or (kept * NARROW < broken and not near):
        return UserBracket(limit.expression, kept, broken, None, points=points, allowed=limit.allowed)
    centre = math.sqrt(kept * broken) if kept * NARROW >= broken else geometric_mean(near)
    fitted = _fitted(settled, limit, centre, wider)
    fitted = fitted and (
        _fitted(settled, limit, fitted.at, wider) or fitted
    )  # which may be far from all that was tried
    return UserBracket(limit.expression, kept, broken, fitted, points=points, allowed=limit.allowed)


def near_rates(stretches: Sequence[Stretch]) -> list[float]:
    """The rates near the answer: those around an estimate, or one of bisection that two stretches left undecided."""
    tried = [stretch for stretch in stretches if stretch.rate > 0 and not stretch.void]
    bisected = Counter(stretch.rate for stretch in tried if stretch.purpose == "bisect")
    around = [stretch.rate for stretch in tried if stretch.purpose in ("above", "below")]
    return around or [rate for rate, times in bisected.items() if times > 1]


def _fitted(blocks: Sequence[UsersBlock], limit: Limit, centre: float, wider: tuple[float, float]) -> Crossing | None:
    near = [block for block in blocks if abs(math.log(block.users / centre)) < NEAR]
    if not near:
        return None
    return crossing(near, limit.allowed, centre, SLOPE_SPREAD, wider)


def _cut(stretch: Stretch, place: int, session_s: float) -> list[UsersBlock]:
    """Its blocks, without the time in which its turns do not yet follow its rate."""
    length_s = max(session_s, stretch.mean_s)
    change = abs(math.log(stretch.before / stretch.rate)) if stretch.before > 0 else math.inf
    left_out = LEFT_OUT_SMALL if change < SMALL_CHANGE else LEFT_OUT_LARGE
    left_out_s = min(left_out * length_s, stretch.seconds / 2)
    return list(blocks_of(stretch, place, left_out_s, max(LEAST_BLOCK_S, BLOCK_LENGTHS * length_s)))


def answer_in_sessions(
    limits: Sequence[Limit],
    settings: Settings,
    stretches: Sequence[Stretch],
    session_s: float,
    *,
    in_users: bool = False,
    single: bool = False,
    slower: float = SLOWER,
) -> Answer:
    """The final one; of open sessions whole numbers, the interval's lower end and the answer rounded down."""
    found = known(limits, stretches, session_s, WIDER_OF_REQUESTS if single else WIDER, slower)
    estimates = tuple(estimate_in_sessions(each, in_users=in_users) for each in found)
    lowest = min(zip(found, estimates, strict=True), key=lambda pair: pair[0].users, default=None)
    of = "requests" if single else "sessions"
    unit = "open sessions" if in_users else f"{of}/s"
    if lowest is None or lowest[0].broken is None:
        return unviolated(settings, found, estimates, unit)
    bracket, estimate = lowest
    if not bracket.kept:
        if changed := bracket.changed(unit):
            return undecided(bracket.name, changed, estimates)
        alone = bracket.broken is not None and bracket.broken <= (1.0 if in_users else ALONE / session_s)
        reason = f"{of} violate {bracket.name} where hardly any meets another"
        if not alone:
            reason = f"{bracket.broken:.3g} violate {bracket.name}, and nothing lower was seen to meet it"
        return Answer("not_kept" if alone else "cannot_tell", limit=bracket.name, reason=reason, estimates=estimates)
    answer = Answer("found", estimate.rate, estimate.interval, bracket.name, estimates=estimates)
    length_s = length_at(estimate.interval.low, limits, stretches, session_s) if estimate.interval else session_s
    return with_overload(
        unless_undecided(answer, found, unit), from_above(limits, stretches, length_s, in_users=in_users), unit
    )


def estimate_in_sessions(bracket: UserBracket, *, in_users: bool) -> Estimate:
    """The estimate that is reported; of open sessions whole numbers."""
    if bracket.broken is None:
        return Estimate(bracket.name, kept_everywhere=bracket.is_kept)
    if not bracket.kept:
        return Estimate(bracket.name)
    fitted = bracket.crossing
    interval = Interval(bracket.kept, bracket.broken) if fitted is None else fitted.interval
    rate = bracket.users
    if in_users:
        rate, interval = math.floor(rate), Interval(math.floor(interval.low), math.ceil(interval.high))
    if fitted is None:
        return Estimate(bracket.name, rate, interval)
    return Estimate(bracket.name, rate, interval, fitted.slope, fitted.dispersion)
