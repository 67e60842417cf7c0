"""The search in users of a closed loop: the largest population that keeps the limits. Pure.

A population that is too large slows itself down, so nothing keeps growing; what a far too large one left is waited for.
``rate`` of a stretch is its number of users here. Near the limit ln(share over) is about linear in ln(users).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.blocks import UsersBlock, cycle_s, joined, settled_blocks, unsettled
from server_capacity.search.crossing import Crossing, crossing
from server_capacity.search.failing import unless_failing_since
from server_capacity.search.low_rate_check import breaking, shown_by, totals
from server_capacity.search.stretch import DRAIN, NOTHING_VIOLATED, TOO_FEW, most_of_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.search import Moment
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

GROW_TIMES, GROW_TIMES_SOME_OVER = 3.0, 1.5
GROW_S, LEAST_ANSWERS = 3.0, 20
BISECT_CYCLES, NEAR_CYCLES = 4.0, 8.0
BISECT_S, NEAR_S = 4.0, 8.0
NEAR_SHARE = 1 / 14
CLEARLY_OVER, CLEARLY_TIMES = 6, 3.0
CLEARLY_ERRORS, CLEARLY_BURSTS = 3.0, 6.0
"""Standard errors, and the variance of counts that come in bursts over that of independent ones."""
NARROW = 1.35
AWAY, MOST_AWAY = 0.5, 0.12
DRAIN_TIMES = 2.0
MOST_CHANGES = 900


class UserSearch:
    """Asked several times a second for the next number of users. ``purpose``: of the stretch that runs.

    ``think_s``: the mean think time. ``settings``: rates are numbers of users. ``client_most``: the most users that the
    client could do, where it was the limit.
    """

    def __init__(self, limits: Sequence[Limit], settings: Settings, think_s: float) -> None:
        self.limits, self.settings, self.think_s = limits, settings, think_s
        most = settings.max_rps or math.inf
        self.first_rate = float(min(settings.start_rps or max(1, round(think_s)), most))
        self.purpose = "grow"
        self.client_most: float | None = None
        self.beside_s = 0.0
        self._changes = 0
        self._above = False

    def order(self, moment: Moment) -> float | Literal["end"] | None:
        """The number of users from now on, the end, or None: as is."""
        running = moment.stretches[-1]
        cycle = cycle_s(moment.stretches, self.think_s)
        most_s = self.settings.load_s(cycle)
        load_s = sum(stretch.seconds for stretch in moment.stretches if stretch.rate > 0)
        if load_s >= most_s or self._changes >= MOST_CHANGES:
            return "end"
        if not running.rate and moment.in_flight:
            return None
        if running.rate and not self._is_long_enough(running, cycle, most_s):
            return None
        self.client_most = most_of_client(moment.stretches) or self.client_most
        found = [self.known(limit, place, moment.stretches) for place, limit in enumerate(self.limits)]
        if running.rate == self.settings.max_rps and not running.void and is_undecided(found, running.rate):
            return None
        purpose, users = self._next(found, running)
        if users * DRAIN_TIMES < running.rate and self.purpose != DRAIN:
            purpose, users = DRAIN, 0.0
        if purpose == "end" or self._is_precise(found):
            return "end"
        self._changes += 1
        self.purpose = purpose
        return users

    def known(self, limit: Limit, place: int, stretches: Sequence[Stretch]) -> UserBracket:
        """The knowledge of one limit."""
        return _known(limit, place, stretches, self.think_s)

    def _is_long_enough(self, running: Stretch, cycle: float, most_s: float) -> bool:
        answered = sum(part.answered for part in running.slices)
        if self.purpose == "grow" and running.rate != self.settings.max_rps:
            return running.seconds >= GROW_S and (answered >= LEAST_ANSWERS or running.seconds >= 2 * cycle)
        if self.purpose == "bisect":
            return running.seconds >= max(BISECT_S, BISECT_CYCLES * cycle)
        return running.seconds >= max(NEAR_S, NEAR_CYCLES * cycle, NEAR_SHARE * most_s)

    def _next(self, found: Sequence[UserBracket], running: Stretch) -> tuple[str, float]:
        broken = [each for each in found if each.broken is not None]
        most = min(self.settings.max_rps or math.inf, self.client_most or math.inf)
        if not broken:
            if running.rate >= most:
                return "end", running.rate
            some = any(part.counts[place].over for part in running.slices for place in range(len(self.limits)))
            grown = math.ceil(running.rate * (GROW_TIMES_SOME_OVER if some else GROW_TIMES))
            return "grow", float(min(grown, most))
        lowest = min(broken, key=lambda each: each.users)
        if lowest.broken is not None and lowest.broken <= 1:
            return "end", 1.0
        if lowest.crossing is None:
            return "bisect", float(max(1, round(lowest.users)))
        self._above = not self._above
        away = min(MOST_AWAY, AWAY / lowest.crossing.slope)
        users = lowest.users * math.exp(away if self._above else -away)
        return ("above" if self._above else "below"), float(min(max(1, round(users)), most))

    def _is_precise(self, found: Sequence[UserBracket]) -> bool:
        if self.settings.precision is None or self.purpose not in ("above", "below"):
            return False
        fitted = [each for each in found if each.crossing is not None]
        lowest = min(fitted, key=lambda each: each.users, default=None)
        if lowest is None or lowest.crossing is None:
            return False
        return lowest.crossing.interval.width <= self.settings.precision * lowest.users


class UserBracket:
    """Of one limit: the most users that kept it below the fewest that clearly broke it, and a fit between them.

    ``points``: what was counted, the fewest users first; a share of ``allowed`` may be over.
    """

    __slots__ = ("allowed", "broken", "crossing", "kept", "name", "points")

    def __init__(
        self,
        name: str,
        kept: float,
        broken: float | None,
        fitted: Crossing | None,
        *,
        points: Sequence[UsersBlock] = (),
        allowed: float = 0.0,
    ) -> None:
        self.name, self.kept, self.broken, self.crossing = name, kept, broken, fitted
        self.points, self.allowed = points, allowed

    @property
    def users(self) -> float:
        """The best guess so far; infinite where nothing broke the limit."""
        if self.crossing is not None:
            return self.crossing.at
        return math.inf if self.broken is None else math.sqrt(max(self.kept, self.broken / 16) * self.broken)

    @property
    def between(self) -> float | None:
        """The rate in the middle between the one that kept it and the one that broke it, where those are far apart."""
        if not self.kept or self.broken is None or self.kept * NARROW >= self.broken:
            return None
        return math.sqrt(self.kept * self.broken)

    @property
    def is_undecided(self) -> bool:
        """Tells whether nothing clearly broke it, and yet more than may be were over: in all, or at the most users."""
        return self.broken is None and any(self._is_over(some) for some in (self.points, self.points[-1:]))

    @property
    def is_kept(self) -> bool:
        """Tells whether whatever was counted keeps it."""
        return self.broken is None and self.kept > 0 and not self.is_undecided

    def against(self, most: float, unit: str) -> str:
        """The counts that speak against keeping it at ``most`` users, in words; empty where none do.

        Where its own crossing was found, chance must not explain them: few are counted below that.
        """
        below = [point for point in self.points if point.users <= most]
        if self.broken is not None:
            return self._text(below, unit) if breaking(below, self.allowed) else ""
        highest = below[-1:] if len(below) == len(self.points) else []
        over = next((some for some in (below, highest) if self._is_over(some)), None)
        return "" if over is None else self._text(over, unit)

    def against_violation(self, unit: str) -> str:
        """The counts that speak against clearly breaking it, in words: from there on, they do not in all.

        Only where nothing was fitted: near a crossing, most of what was counted breaks it hardly.
        """
        above = [point for point in self.points if self.broken is not None and point.users >= self.broken]
        of, over = totals(above)
        if self.crossing is not None or over > min(0.8, CLEARLY_TIMES * self.allowed) * of or not of:
            return ""
        return counts_text(f"{load_text(above[0].users, unit)} and above", of, over, self.name, self.allowed)

    def changed(self, unit: str) -> str:
        """The counts of breaking it at the fewest users although more met it, in words; empty where none did."""
        lowest = [point for point in self.points if point.users == self.broken]
        met = [point for point in self.points if self.broken is not None and point.users > self.broken]
        met = [each for each in met if each.share <= self.allowed and each.of * lowest[0].share >= CLEARLY_OVER]
        if not met:
            return ""
        return f"{self._text(lowest, unit)}, but at {load_text(met[-1].users, unit)} it was met: the endpoint changed"

    def _is_over(self, points: Sequence[UsersBlock]) -> bool:
        of, over = totals(points)
        return over > self.allowed * of

    def _text(self, points: Sequence[UsersBlock], unit: str) -> str:
        where = f"{load_text(points[-1].users, unit)}{' and below' if len(points) > 1 else ''}"
        return counts_text(where, *totals(points), self.name, self.allowed)


def counts_text(where: str, of: int, over: int, name: str, allowed: float) -> str:
    """The count of what was over a limit, and the share that may be."""
    share = f"{over:,} of {of:,} ({100 * over / of:.3g}%)"
    return f"at {where}, {share} were over the limit of {name}, and {100 * allowed:g}% may be"


def load_text(users: float, unit: str) -> str:
    """Users are whole; rates have three digits."""
    amount = f"{users:,.0f}" if users == round(users) else f"{users:.3g}"
    unit = unit.removesuffix("s") if amount == "1" and "/" not in unit else unit
    return f"{amount}{'' if unit.startswith('/') else ' '}{unit}"


def clearly_over(of: int, over: int, allowed: float) -> bool:
    """Tells whether so many over are clearly more than may be."""
    return over >= min(CLEARLY_OVER, max(1, of)) and over > _clear_share(of, allowed) * of


def _clear_share(of: int, allowed: float) -> float:
    """The share over that is clearly too much; of a low percentile, three times what may be is all and more."""
    share = min(0.8, CLEARLY_TIMES * allowed)
    if share < 0.5 or not of:
        return share
    return min(share, allowed + CLEARLY_ERRORS * math.sqrt(CLEARLY_BURSTS * allowed * (1 - allowed) / of))


def _known(limit: Limit, place: int, stretches: Sequence[Stretch], think_s: float) -> UserBracket:
    blocks = settled_blocks(stretches, place, think_s)
    return known_of(limit, blocks, unsettled(stretches, place, blocks))


def known_of(limit: Limit, blocks: Sequence[UsersBlock], short: Sequence[UsersBlock] = ()) -> UserBracket:
    """The knowledge that the blocks of all stretches give of a limit; it is fitted once its bracket is narrow.

    ``short``: of stretches that did not settle, which count where they clearly break it.
    """
    points = joined([*blocks, *(each for each in short if clearly_over(each.of, each.over, limit.allowed))])
    points = [each for each in points if each.of]  # where nothing was answered, no limit was met
    breaking = [point.users for point in points if clearly_over(point.of, point.over, limit.allowed)]
    broken = min(breaking, default=None)
    below = [each.users for each in points if each.share <= limit.allowed and (broken is None or each.users < broken)]
    kept = max(below, default=0.0)
    if broken is None or kept * NARROW < broken:
        return UserBracket(limit.expression, kept, broken, None, points=points, allowed=limit.allowed)
    centre = math.sqrt(kept * broken)
    near = [each for each in blocks if abs(math.log(each.users / centre)) < 0.35]
    fitted = crossing(near, limit.allowed, centre)
    return UserBracket(limit.expression, kept, broken, fitted, points=points, allowed=limit.allowed)


def is_undecided(found: Sequence[UserBracket], most: float) -> bool:
    """Tells whether nothing clearly broke any limit, and yet nobody can say that all are met at ``most`` users."""
    if any(each.broken is not None for each in found):
        return False
    return any(each.is_undecided for each in found) or (_shown(found) or 0.0) < most


def answer_in_users(
    limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], think_s: float
) -> Answer:
    """The final one; a number of users and its interval's lower end are rounded down, for nobody is half there."""
    return unless_failing_since(limits, stretches, _answer(limits, settings, stretches, think_s), " users")


def _answer(limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], think_s: float) -> Answer:
    found = [_known(limit, place, stretches, think_s) for place, limit in enumerate(limits)]
    estimates = tuple(map(estimate_of, found))
    lowest = min(zip(found, estimates, strict=True), key=lambda pair: pair[0].users, default=None)
    if lowest is None or lowest[0].broken is None:
        return unviolated(settings, found, estimates, "users")
    known, estimate = lowest
    if known.broken is not None and known.broken <= 1:
        if changed := known.changed("users"):
            return undecided(known.name, changed, estimates)
        reason = f"a single user violates {known.name}"
        return Answer("not_kept", limit=known.name, reason=reason, estimates=estimates)
    if known.kept < 1:
        reason = f"{known.broken:.0f} users violate {known.name}, and no smaller number was seen to meet it"
        return Answer("cannot_tell", limit=known.name, reason=reason, estimates=estimates)
    answer = Answer("found", estimate.rate, estimate.interval, known.name, estimates=estimates)
    return unless_undecided(answer, found, "users")


def unviolated(settings: Settings, found: Sequence[UserBracket], estimates: tuple[Estimate, ...], unit: str) -> Answer:
    """The answer where nothing clearly violated a limit: what settled is what was tried."""
    highest = (max((point.users for point in each.points if point.of), default=0.0) for each in found if each.points)
    tried = min(highest, default=0.0)
    for each in found:
        if reason := each.against(math.inf, unit):
            return Answer("cannot_tell", limit=each.name, reason=reason, estimates=estimates)
    met = _shown(found) if tried else None
    if settings.max_rps is None or tried < settings.max_rps:
        return Answer("cannot_tell", at_least=met, reason=NOTHING_VIOLATED, estimates=estimates)
    if met is None or met < settings.max_rps:
        reason = f"{settings.max_rps:g} {unit}, the highest rate allowed, {TOO_FEW}"
        return Answer("cannot_tell", at_least=met, reason=reason, estimates=estimates)
    reason = f"every limit is met at the highest rate allowed, {settings.max_rps:g} {unit}"
    return Answer("at_least", at_least=tried, reason=reason, estimates=estimates)


def _shown(found: Sequence[UserBracket]) -> float | None:
    """The most users at which enough requests show every limit met; None where there are too few of them."""
    return shown_by(
        [(each.allowed, [(at.users, at.of, at.over) for at in each.points]) for each in found if each.points]
    )


def unless_undecided(answer: Answer, found: Sequence[UserBracket], unit: str) -> Answer:
    """The answer, unless a limit had more over than may be at fewer users too, where it should be met."""
    for bracket, estimate in zip(found, answer.estimates, strict=True):
        low = math.inf if estimate.interval is None else estimate.interval.low
        chance = bracket.against_violation(unit) if bracket.name == answer.limit else ""
        if reason := bracket.against(min(answer.rate or 0.0, low), unit) or chance:
            return undecided(bracket.name, reason, answer.estimates)
    return answer


def undecided(limit: str, reason: str, estimates: Sequence[Estimate]) -> Answer:
    """No answer, and no estimate of the limit that leaves it open."""
    open_ = (replace(each, rate=None, interval=None) if each.limit == limit else each for each in estimates)
    return Answer("cannot_tell", limit=limit, reason=reason, estimates=tuple(open_))


def estimate_of(bracket: UserBracket) -> Estimate:
    """The estimate that is reported."""
    if bracket.broken is None:
        return Estimate(bracket.name, kept_everywhere=bracket.is_kept)
    if bracket.crossing is None:
        return Estimate(bracket.name, math.floor(bracket.users), Interval(bracket.kept, bracket.broken))
    fitted = bracket.crossing
    interval = Interval(math.floor(fitted.interval.low), math.ceil(fitted.interval.high))
    return Estimate(bracket.name, math.floor(fitted.at), interval, fitted.slope, fitted.dispersion)
