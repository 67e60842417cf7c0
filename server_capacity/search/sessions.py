"""The search for sessions: how many may begin a second, or be open at a time, with every limit kept. Pure.

Also for requests whose answers are generated, each a session of one turn: a server that generates for many at a time
answers each more slowly the more there are, which a search for a queue's saturation takes for a backlog.

A stretch's ``rate`` is that of sessions or their number, and its slices have the sessions that began in them, those
that ended and their lengths. The counts are of turns, or of sessions where a limit is on those. Turns of one session
are no independent requests: the unit of randomness is a block of a few session lengths, and the sessions in it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from server_capacity.search.keeping_up import SLOWER, with_drained
from server_capacity.search.limit_bracket import KEEPS_UP, WAITED
from server_capacity.search.recovery import AFTER, Recovery, from_below, held_s, is_broken, length_at, length_below
from server_capacity.search.search import Moment
from server_capacity.search.session_answer import ALONE, NEAR, WIDER, WIDER_OF_REQUESTS, estimate_in_sessions, known
from server_capacity.search.settings import SessionTimes
from server_capacity.search.stretch import AT_MOST, DRAIN, PAUSE, most_of_client
from server_capacity.search.users import CLEARLY_OVER, UserBracket, is_undecided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

GROW_TIMES, GROW_TIMES_SOME_OVER = 2.0, 1.5
LENGTHS = {"grow": 1.5, "bisect": 3.0}
NEAR_LENGTHS, LEAST_S = 8.0, 3.0
"""A stretch lasts for so many session lengths: turns follow the rate of sessions only after one of them."""
NEAR_SHARE = 1 / 14
AWAY, MOST_AWAY = 0.5, 0.12
BACKLOG, BACKLOG_TIMES = 10.0, 1.7
"""Sessions that are open beyond what their rate and length give: more is a backlog that grows."""
DRAINED = 1.1
LONGEST_DRAIN, LONGEST_SERVED_S = 30.0, 300.0
"""Session lengths for which a pause lasts at most, and seconds while the endpoint serves what is left."""
MOST_CHANGES = 900
PILED_UP_TIMES, PILED_UP, PILED_UP_LENGTHS = 2.0, 5.0, 10.0
"""The same of streamed requests, of which growth waits for more than so many."""


class SessionSearch:
    """Asked several times a second for the next rate of sessions. ``purpose``: of the stretch that runs.

    ``session_s``: the length of a session that is nearly alone. ``in_users``: rates are numbers of open sessions.
    ``single``: they are requests, whose search does not end with overload and the return from it. ``slower``: times
    their length alone, they may last with every limit met. ``client_most``: the highest that the client could do, where
    it was the limit. ``beside_s``: the load of another search that it knows,
    and that it would not have sent itself.
    """

    def __init__(
        self,
        limits: Sequence[Limit],
        settings: Settings,
        session_s: float,
        *,
        in_users: bool = False,
        single: bool = False,
        slower: float = SLOWER,
    ) -> None:
        self.limits, self.settings, self.session_s, self.in_users = limits, settings, session_s, in_users
        self._waits_s = max([limit.bound_s or 0.0 for limit in limits if limit.metric in WAITED], default=0.0)
        first = 1.0 if in_users else 1.0 / session_s
        wanted = settings.start_rps or first
        if not in_users and not self._waits_s:
            wanted = min(wanted, first)  # whether more wait shows only beside lower rates, at which none do
        self.first_rate = min(wanted, settings.max_rps or math.inf)
        self.purpose = "grow"
        self.client_most: float | None = None
        self.beside_s = 0.0
        self._least = 1.0 if in_users else ALONE / session_s
        self._times = settings.times_of_sessions(session_s)
        self._wider, self._single, self._slower = WIDER, single, slower
        if single:
            self._wider = WIDER_OF_REQUESTS
            self._times = SessionTimes(settings.load_s(session_s), settings.load_s(session_s))
        self._changes = 0
        self._above = self._is_behind = False
        self._recovery: Recovery | None = None
        self._lengths: dict[tuple[int, int], float] = {}

    def resume(self, stretches: Sequence[Stretch]) -> float | Literal["end"]:
        """The first rate of a search that knows another one's stretches, or the end where they are enough.

        Those near the answer are as good as its own; overload is not, so each search has its own. Nothing is in flight
        any more: so growth goes on from the highest rate once more, as a step up from nothing shows bursts that no
        steady rate has.
        """
        near = min(each.users for each in self._known(stretches))
        known = [each for each in from_below(stretches) if each.rate > 0 and not each.void and 0 < near < math.inf]
        served = min(_load_s([each for each in known if abs(math.log(each.rate / near)) < NEAR]), self._times.search_s)
        self.beside_s = _load_s(stretches) - served
        if served >= self._times.search_s:
            return (self._recover(stretches) if self._times.recovers else None) or "end"
        rate = self._next(Moment(stretches[-1].end_s, stretches, 0)) or stretches[-1].rate or self.first_rate
        if rate == "end" or self.purpose != "grow":
            return rate
        return min(rate, max((each.rate for each in stretches if not each.void), default=0.0) or rate)

    def order(self, moment: Moment) -> float | Literal["end"] | None:
        """The rate from now on, the end, or None: as is."""
        running, length_s = moment.stretches[-1], self._length_s(moment.stretches)
        load_s = _load_s(moment.stretches) - self.beside_s
        times = self._times
        if load_s >= times.most_s or self._changes >= MOST_CHANGES:
            return "end"
        if self.purpose in AFTER or load_s >= times.search_s:
            return self._recover(moment.stretches) if times.recovers else "end"
        if not running.rate:
            return None if self._is_draining(moment) else self._next(moment)
        self.client_most = most_of_client(moment.stretches) or self.client_most
        if self._is_overloaded(moment.stretches):
            return self._change(DRAIN, 0.0)
        if not self._is_long_enough(running, length_s) or self._piles_up(moment.stretches):
            return None
        stays = (
            self.purpose == AT_MOST and not running.void and is_undecided(self._known(moment.stretches), running.rate)
        )
        return None if stays else self._next(moment)

    def _is_draining(self, moment: Moment) -> bool:
        """Tells whether more sessions are open than at the next rate."""
        _, rate = self._aim(moment.stretches)
        length_s = self._length_at_s(moment.stretches, rate)
        pause = moment.stretches[-1]
        is_served = any(part.answered for part in pause.slices if part.end_s > pause.end_s - LEAST_S - length_s)
        longest_s = max(LONGEST_DRAIN * length_s, LONGEST_SERVED_S if is_served and self._single else 0.0)
        return moment.in_flight > DRAINED * rate * length_s + 1 and pause.seconds < longest_s

    def _is_overloaded(self, stretches: Sequence[Stretch]) -> bool:
        """Tells whether more sessions are open than a steady state has."""
        running = stretches[-1]
        if self.in_users or running.seconds < LEAST_S:
            return False
        if is_broken(self.limits, running):
            times, length_s = BACKLOG_TIMES, self._length_s(stretches)
        else:
            times, length_s = self._slower, self._length_below_s(stretches, running.rate)
        usual = max(running.rate * length_s, 0 if self._single else running.inherited)
        return running.in_flight > times * usual + BACKLOG

    def _piles_up(self, stretches: Sequence[Stretch]) -> bool:
        """Tells whether growth waits for requests in flight: nobody knows yet whether they are over a limit."""
        running = stretches[-1]
        if running.seconds >= PILED_UP_LENGTHS * self.session_s:
            return False
        usual = running.rate * self.session_s
        return self._single and self.purpose == "grow" and running.in_flight > PILED_UP_TIMES * usual + PILED_UP

    def _is_long_enough(self, running: Stretch, length_s: float) -> bool:
        if self.purpose in LENGTHS and running.seconds >= LEAST_S + length_s / 2 and is_broken(self.limits, running):
            return True
        if self.purpose == AT_MOST and not self._waits_s:
            return False  # whether the endpoint keeps up shows only in time
        if self.purpose in LENGTHS:
            return running.seconds >= max(LEAST_S + self._waits_s, LENGTHS[self.purpose] * length_s)
        shares = NEAR_SHARE * self.settings.load_s(self.session_s)
        return running.seconds >= max(LEAST_S, NEAR_LENGTHS * length_s, shares)

    def _next(self, moment: Moment) -> float | Literal["end"] | None:
        running = moment.stretches[-1]
        purpose, rate = self._aim(moment.stretches)
        found = self._known(moment.stretches)
        if purpose == "end":
            return "end"
        if self._is_precise(found):
            return self._recover(moment.stretches) if self._times.recovers else "end"
        length_s = self._length_at_s(moment.stretches, rate)
        too_many = moment.in_flight > BACKLOG_TIMES * rate * length_s + BACKLOG
        if running.rate and too_many and not self.in_users:
            return self._change(PAUSE, 0.0)  # they are too many for the next rate, maybe not for this one
        self._above = purpose == "above"
        return self._change(purpose, rate)

    def _recover(self, stretches: Sequence[Stretch]) -> float | Literal["end"] | None:
        """The end of the search: overload, and rates after it."""
        self._recovery = self._recovery or self._recovery_of(stretches)
        if self._recovery is None:
            return "end"
        order = self._recovery.next(stretches)
        if order is None:
            return None
        purpose, rate = order
        return "end" if purpose == "end" else self._change(purpose, rate)

    def _recovery_of(self, stretches: Sequence[Stretch]) -> Recovery | None:
        """From the interval as it is before overload; None where no limit was broken."""
        lowest = min(self._known(stretches), key=lambda each: each.users)
        if lowest.broken is None or not lowest.kept:
            return None
        most = min(self.settings.max_rps or math.inf, self.client_most or math.inf)
        found = estimate_in_sessions(lowest, in_users=self.in_users).interval
        assert found is not None
        length_s = length_at(found.low, self.limits, stretches, self.session_s)
        return Recovery(self.limits, found, length_s, most, self.in_users)

    def _aim(self, stretches: Sequence[Stretch]) -> tuple[str, float]:
        """The next purpose and rate, by what is known."""
        most = min(self.settings.max_rps or math.inf, self.client_most or math.inf)
        lowest = min(self._known(stretches), key=lambda each: each.users)
        self._is_behind = lowest.name == KEEPS_UP and lowest.broken is not None
        if lowest.broken is None:
            return self._grown(stretches, most)
        if lowest.broken <= self._least and _over_at(lowest) >= CLEARLY_OVER:
            return "end", lowest.broken
        between = lowest.between if lowest.name == KEEPS_UP else None
        if lowest.crossing is None or between is not None:
            return "bisect", self._whole(min(max(self._least, between or lowest.users), most))
        away = min(MOST_AWAY, AWAY / lowest.crossing.slope) * (-1 if self._above else 1)
        return ("below" if self._above else "above"), self._whole(min(lowest.users * math.exp(away), most))

    def _grown(self, stretches: Sequence[Stretch], most: float) -> tuple[str, float]:
        tried = [stretch for stretch in stretches if stretch.rate > 0 and not stretch.void]
        best = max((stretch.rate for stretch in tried), default=self.first_rate / GROW_TIMES)
        if best >= most * 0.999:
            stayed = any(stretch.purpose == AT_MOST for stretch in tried)
            return ("end", best) if stayed else (AT_MOST, self._whole(most))
        some = any(count.over for part in (tried[-1].slices if tried else ()) for count in part.counts)
        return "grow", self._whole(min(best * (GROW_TIMES_SOME_OVER if some else GROW_TIMES), most))

    def _whole(self, rate: float) -> float:
        return float(max(1, round(rate))) if self.in_users else rate

    def _known(self, stretches: Sequence[Stretch]) -> list[UserBracket]:
        """While it runs, the answers of a pause tell of the requests before it; later all count when they were due."""
        stretches = with_drained(stretches) if self._single else stretches
        return known(self.limits, stretches, self.session_s, self._wider, self._slower)

    def _length_s(self, stretches: Sequence[Stretch]) -> float:
        """The mean length of sessions at the rate of those that broke nothing where it is longest."""
        return max(self.session_s, *map(self._held_s, from_below(stretches)))

    def _length_below_s(self, stretches: Sequence[Stretch], rate: float) -> float:
        """The usual length at a rate; of sessions whose limits show a queue, that of all that broke none."""
        if self._waits_s and not self._single:
            return self._length_s(stretches)
        return length_below(rate, self.limits, stretches, self.session_s)

    def _length_at_s(self, stretches: Sequence[Stretch], rate: float) -> float:
        """The length that explains what is open at a next rate; a backlog does where the endpoint does not keep up."""
        return self._length_below_s(stretches, rate) if self._is_behind else self._length_s(stretches)

    def _held_s(self, stretch: Stretch) -> float:
        """Computed once: this is asked each time."""
        key = stretch.number, len(stretch.slices)
        if key not in self._lengths:
            self._lengths[key] = held_s(self.limits, stretch)
        return self._lengths[key]

    def _is_precise(self, found: Sequence[UserBracket]) -> bool:
        precision, lowest = self.settings.precision, min(found, key=lambda each: each.users)
        if precision is None or lowest.crossing is None or self.purpose not in ("above", "below"):
            return False
        return lowest.crossing.interval.width <= precision * lowest.users

    def _change(self, purpose: str, rate: float) -> float:
        self._changes += 1
        self.purpose = purpose
        return rate


def _over_at(bracket: UserBracket) -> int:
    """The number over a limit at the lowest rate that broke it, and below."""
    return sum(point.over for point in bracket.points if bracket.broken is not None and point.users <= bracket.broken)


def _load_s(stretches: Sequence[Stretch]) -> float:
    """The seconds of load; pauses are none."""
    return sum(stretch.seconds for stretch in stretches if stretch.rate > 0)
