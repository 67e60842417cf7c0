"""The search itself: one wave whose rate changes, ordered from what has been counted so far. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from server_capacity.search.curve import COARSE
from server_capacity.search.failing import is_failing_from_the_start
from server_capacity.search.growth import beyond, doubtful, known_from_below, served_s
from server_capacity.search.limit_bracket import lowest_of
from server_capacity.search.low_rate_check import BENEATH, beneath, no_rate_meets, shown
from server_capacity.search.pace import Pace, is_unanswered, overloaded, pace_of, timed
from server_capacity.search.retried_rate import (
    AGAIN,
    COMPARE,
    as_compared,
    to_compare,
    to_try_again,
    without_accidents,
    without_warm_up,
)
from server_capacity.search.settings import USUAL_TIME_S
from server_capacity.search.slow_down import from_then_on, lasts, slower
from server_capacity.search.stretch import DRAIN, most_of_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limit_bracket import LimitBracket
    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

FIRST_RATE = 1.0
GROW_TIMES, GROW_S = 2.0, 2.5
ENOUGH_ANSWERS, ANSWERED_GROW_S = 8, 1.25  # answers, after which growth goes on sooner
FEW = 8.0  # requests/s below which the rate grows faster
NEAR_S = 8.0
LEAST_SENT = 20.0
LONGEST_PAUSE_S = 300.0
AT_MOST_S = 30.0
NARROW_STEP = 0.99
CLOSE = 1.2  # so near is what the client can send to what it cannot
LEAST_LOAD_S = 60.0
BACKLOG, BACKLOG_ANSWERS = 10.0, 4.0
FAR_DOWN = 0.75  # of a rate
LEFT_S = 0.5  # of a lower rate: so much that is left of a far higher one would break its limit
AWAY, MOST_AWAY = 0.25, 0.1
LOOKS = ((0.25, AGAIN), (0.35, BENEATH), (0.5, AGAIN), (0.65, BENEATH))  # after these parts of the usual time
LATE = 0.65  # of that time
LEAST_ANSWERS = 60.0  # as long as so many one after the other must a search be for that
ISLANDS_FROM, ISLAND_TIMES = 0.9, 2.0  # of the time, after which rates above are looked at
MOST_CHANGES = 900
FAILING_S, FAILING_SHARE = 30.0, 1 / 3  # so long, or such a part of the time, an endpoint may fail from the start


@dataclass(frozen=True, slots=True)
class Moment:
    """The knowledge of now, ``now_s`` seconds after wave start; the last stretch runs and ends now.

    Slices of answers as they came in, up to about 1.5 s late. ``in_flight``: requests not answered yet.
    """

    now_s: float
    stretches: Sequence[Stretch]
    in_flight: int


class Search:
    """Asked several times a second for the next rate. ``purpose`` of the stretch that runs or was just ordered.

    ``client_most``: the highest rate that the client could do, where it was the limit. ``beside_s``: the load of
    another search that it knows, and that it would not have sent itself.
    """

    def __init__(self, limits: Sequence[Limit], settings: Settings) -> None:
        self.limits, self.settings = limits, settings
        self.first_rate = min(settings.start_rps or FIRST_RATE, settings.max_rps or math.inf)
        self.purpose = "grow"
        self.client_most: float | None = None
        self.beside_s = 0.0
        self._too_much = 0.0
        self._load_s = 0.0
        self._changes = 0
        self._above = False
        self._looks = 0
        self._paced, self._known_pace = -1, Pace()
        self._compared, self._lasts_from_s = 0, 0.0
        self._voids: dict[int, str] = {}

    def resume(self, stretches: Sequence[Stretch]) -> float | Literal["end"]:
        """The first rate of a search that knows another one's stretches, or the end where they are enough.

        Their slices have the counts of this one's limits. Nothing is in flight any more.
        """
        moment = Moment(stretches[-1].end_s, without_accidents(self.limits, self._lasting(stretches)), 0)
        served, answer_s = served_s(self.limits, self.settings, moment.stretches), self._pace(moment).answer_s
        if served >= self.settings.load_s(answer_s):
            return "end"
        self._looks = sum(due <= self._part(served, answer_s) for due, _ in LOOKS)  # the other one did these
        first = self._next(moment)
        self._load_s, self._changes = served, 0
        self.beside_s = sum(each.seconds for each in stretches if each.rate > 0) - served
        return first or stretches[-1].rate or self.first_rate

    def order(self, moment: Moment) -> float | Literal["end"] | None:
        """The rate to send from now on (0 pauses until the backlog is gone), the end, or None: as is."""
        running = moment.stretches[-1]
        lasting = self._lasting(moment.stretches)
        moment = replace(moment, stretches=without_accidents(self.limits, lasting))
        if running.rate == 0:
            return self._after_pause(moment)
        load_s = self.settings.load_s(self._pace(moment).answer_s)
        if self._load_s + running.seconds >= load_s or self._changes >= MOST_CHANGES:
            return "end"
        if running.void:
            return self._after_void(moment)
        if running.seconds >= 1.0 and overloaded(running, self._pace(moment).answer_s):
            return self._change(DRAIN, 0.0, moment)
        if running.seconds < self._least_s(running, moment):
            return None
        return self._next(moment)

    def _lasting(self, stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
        """Without what came before the endpoint was warm, or got slower, as far as stretches show that are over."""
        if self._compared != len(stretches):
            warm = without_warm_up(self.limits, stretches[:-1])
            seen = slower(self.limits, warm)
            self._compared, self._lasts_from_s = len(stretches), seen.from_s if seen else 0.0
            self._voids = {each.number: each.void for each in warm}
        voids = self._voids
        known = (replace(each, void=voids.get(each.number) or each.void) for each in as_compared(stretches))
        return from_then_on(tuple(known), self._lasts_from_s)

    def _after_pause(self, moment: Moment) -> float | Literal["end"] | None:
        pause = moment.stretches[-1]
        if moment.in_flight > 0 and pause.seconds < LONGEST_PAUSE_S + 10.0 * self._pace(moment).answer_s:
            return None
        return self._next(moment)

    def _after_void(self, moment: Moment) -> float | Literal["end"] | None:
        """Nothing that the client could not send is tried again, and its backlog, not known yet, is waited out.

        Another stretch that does not count is tried again.
        """
        running = moment.stretches[-1]
        if not running.by_client:
            return self._next(moment) if running.seconds >= self._least_s(running, moment) else None
        most = most_of_client(moment.stretches)
        if most is not None:
            self.client_most, self._too_much = most, running.rate
        return self._change(DRAIN, 0.0, moment)

    def _least_s(self, running: Stretch, moment: Moment) -> float:
        """A stretch is long enough for answers to come, and near the answer for the queue to be in many states."""
        pace = self._pace(moment)
        if self.purpose in ("grow", COMPARE):
            known = self.purpose == "grow" and running.answered >= ENOUGH_ANSWERS
            return max(ANSWERED_GROW_S if known else GROW_S, 3 * pace.answer_s)
        longest = max(NEAR_S, self.settings.load_s(pace.answer_s) / 13)
        wanted = max(8 * pace.relaxation_s(running.rate), 20 * pace.answer_s, LEAST_SENT / running.rate)
        return max(NEAR_S, min(wanted, longest))

    def _pace(self, moment: Moment) -> Pace:
        if self._paced != len(moment.stretches):
            self._paced, self._known_pace = len(moment.stretches), pace_of(moment.stretches[:-1])
        return self._known_pace

    def _next(self, moment: Moment) -> float | Literal["end"] | None:
        """The next rate, by what is known of all limits; or a pause first, where a backlog is left."""
        running, answer_s = moment.stretches[-1], pace_of(moment.stretches).answer_s
        left = running.rate > 0 and moment.in_flight > BACKLOG + BACKLOG_ANSWERS * running.rate * answer_s
        if left or (len(moment.stretches) == 1 and is_unanswered(running)):
            return self._change(DRAIN, 0.0, moment)
        lowest = lowest_of(known_from_below(self.limits, self.settings, moment.stretches, COARSE))
        if self.purpose == AGAIN and (low := to_compare(self.limits, moment.stretches)):
            return self._change(COMPARE, low, moment)
        doubt = doubtful(self.limits, moment.stretches)
        if doubt is not None and (lowest.broken is None or doubt < lowest.kept):
            return None if doubt == running.rate else self._down_to("grow", doubt, moment)
        return self._towards(lowest, moment, answer_s)

    def _towards(self, lowest: LimitBracket, moment: Moment, answer_s: float) -> float | Literal["end"]:
        """The next rate by the limit that the lowest rate breaks, or the end where no more needs to be known."""
        is_over = lowest.broken is None or self._is_over(lowest, moment)
        if is_over and self._may_cease_to_fail(lowest, moment, answer_s):
            return self._change("bisect", self.first_rate, moment)
        if lowest.broken is None:
            return self._grow(moment, answer_s)
        if is_over and self._is_precise(moment) and lasts(self.settings, moment.stretches):
            return "end"
        return self._aim(lowest, moment, answer_s)

    def _aim(self, lowest: LimitBracket, moment: Moment, answer_s: float) -> float:
        """Around the answer, or above."""
        look = self._look_again(lowest, moment, answer_s) or self._island(lowest, moment, answer_s)
        purpose, rate = look or self._closer(lowest)
        return self._down_to(purpose, rate, moment)

    def _down_to(self, purpose: str, rate: float, moment: Moment) -> float:
        """Another rate, far down only once what waits is little for it."""
        if rate < FAR_DOWN * moment.stretches[-1].rate and moment.in_flight > BACKLOG + LEFT_S * rate:
            return self._change(DRAIN, 0.0, moment)
        return self._change(purpose, rate, moment)

    def _look_again(self, lowest: LimitBracket, moment: Moment, answer_s: float) -> tuple[str, float] | None:
        """At times what ended growth, as the endpoint may have been slower at first; or well below the answer.

        In a short search the answer comes first: a rate near it, and a fit for most of the time.
        """
        if self._looks == len(LOOKS) or self.settings.load_s(answer_s) < LEAST_ANSWERS * answer_s:
            return None
        due, purpose = LOOKS[self._looks]
        part = self._part(self._load_s + moment.stretches[-1].seconds, answer_s)
        if part < due:
            return None
        last = next(each.purpose for each in reversed(moment.stretches) if each.rate)
        if last == "grow" or (purpose == BENEATH and lowest.fit is None and part < LATE):
            return None
        self._looks += 1
        rate = None
        if purpose == BENEATH:
            rate = beneath(self.limits, moment.stretches, lowest.name, lowest.rate)
        elif all(stretch.purpose != COMPARE for stretch in moment.stretches):
            rate = to_try_again(self.limits, moment.stretches)
        most = min(self.settings.max_rps or math.inf, self.client_most or math.inf)
        return None if rate is None or rate > most else (purpose, rate)

    def _part(self, load_s: float, answer_s: float) -> float:
        """The part of the usual time that so much load is."""
        return load_s / min(self.settings.load_s(answer_s), max(USUAL_TIME_S, LEAST_ANSWERS * answer_s))

    def _island(self, lowest: LimitBracket, moment: Moment, answer_s: float) -> tuple[str, float] | None:
        """At last, rates above that growth did not come to: the limits may be kept there again."""
        load_s = self._load_s + moment.stretches[-1].seconds
        if lowest.fit is None or load_s < ISLANDS_FROM * self.settings.load_s(answer_s):
            return None
        rate = beyond(self.limits, moment.stretches, ISLAND_TIMES)
        most = min(self.settings.max_rps or math.inf, self.client_most or math.inf)
        return None if rate is None or rate > most else ("island", rate)

    def _grow(self, moment: Moment, answer_s: float) -> float | Literal["end"]:
        clean = [stretch for stretch in moment.stretches if stretch.rate and not stretch.void]
        answered = [stretch.rate for stretch in clean if not is_unanswered(stretch)]
        best = max(answered, default=min(self.first_rate, 1.0 / max(answer_s, 1e-3)) / GROW_TIMES)
        if self.client_most is not None:
            self.client_most = max(self.client_most, best)
        if self._too_much > CLOSE * best:
            return self._change("grow", math.sqrt(best * self._too_much), moment)
        most = min(self.settings.max_rps or math.inf, self.client_most or math.inf)
        if best >= most * 0.999:
            at_most = sum(stretch.seconds for stretch in clean if stretch.rate >= most * 0.999)
            is_shown = at_most >= AT_MOST_S and (shown(self.limits, moment.stretches) or 0.0) >= most * 0.999
            return "end" if is_shown else self._change("at most", most, moment)
        times = GROW_TIMES**2 if best < FEW and best * answer_s < 1.0 else GROW_TIMES
        return self._change("grow", min(max(best * times, _alone(clean)), most), moment)

    def _is_over(self, lowest: LimitBracket, moment: Moment) -> bool:
        """Tells whether no more needs to be known: a step that is narrow, the precision, or that no rate is kept."""
        if lowest.broken is not None and not lowest.kept:
            places = (place for place, limit in enumerate(self.limits) if limit.expression == lowest.name)
            return any(no_rate_meets(self.limits[place], place, moment.stretches) for place in places)
        if lowest.step and lowest.broken is not None:
            return lowest.kept >= NARROW_STEP * lowest.broken
        precision = self.settings.precision
        if lowest.fit is None or precision is None:
            return False
        return self._load_s >= LEAST_LOAD_S and lowest.fit.interval.width <= precision * lowest.fit.rate

    def _may_cease_to_fail(self, lowest: LimitBracket, moment: Moment, answer_s: float) -> bool:
        """Tells whether requests fail from the start, at a rate that is low, and for a short time so far."""
        if lowest.broken is not None and (lowest.kept or lowest.broken > self.first_rate):
            return False
        given_s = max(FAILING_S, FAILING_SHARE * self.settings.load_s(answer_s))
        first = is_failing_from_the_start(self.limits, moment.stretches)
        return first and self._load_s + moment.stretches[-1].seconds < given_s

    def _is_precise(self, moment: Moment) -> bool:
        """Tells whether the precision holds on the grid that the answer is taken from, too."""
        precision = self.settings.precision
        lowest = lowest_of(known_from_below(self.limits, self.settings, moment.stretches))
        return precision is None or lowest.fit is None or lowest.fit.interval.width <= precision * lowest.fit.rate

    def _closer(self, lowest: LimitBracket) -> tuple[str, float]:
        """Bisecting until there is a fit; then from below and from above in turn, by a share of the slope's length."""
        fitted = lowest.fit
        most = min(self.settings.max_rps or math.inf, self.client_most or math.inf)
        if fitted is None:
            return "bisect", min(lowest.rate, most)
        self._above = not self._above
        away = min(MOST_AWAY, max(AWAY / fitted.slope, AWAY * fitted.sd))
        purpose, rate = (
            ("above", fitted.rate * math.exp(away)) if self._above else ("below", fitted.rate * math.exp(-away))
        )
        return purpose, min(rate, most)

    def _change(self, purpose: str, rate: float, moment: Moment) -> float:
        running = moment.stretches[-1]
        self._load_s += running.seconds if running.rate > 0 and not running.void else 0.0
        self._changes += 1
        self.purpose = purpose
        return rate


def _alone(stretches: Sequence[Stretch]) -> float:
    """The rate that keeps one server busy, by the times of the answers so far: less where they are few."""
    usable = timed(stretches)
    spent_s = sum(each.spent_s for each in usable)
    return (sum(each.answered for each in usable) - 1) / spent_s if spent_s else 0.0
