"""Steers the adaptive wave: what the workers report becomes slices, what the search orders becomes a rate."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.engine.pilot import End
from inference_benchmarker.words.units import NS
from server_capacity.experiments.capacity.progress import progress_text
from server_capacity.experiments.measurements.client_limit import ClientWatch
from server_capacity.experiments.measurements.counting import shown_metric
from server_capacity.experiments.measurements.live_counts import UserWatch, counts_of
from server_capacity.search.search import Moment
from server_capacity.search.settings import LONGEST_TIME_S
from server_capacity.search.stretch import Count, Slice
from server_capacity.search.track import Track

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.engine.pilot import Order
    from inference_benchmarker.records.feed import Feed
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.search import Search
    from server_capacity.search.stretch import Stretch
    from server_capacity.search.users import UserSearch

ASK_NS = NS // 5
HEARD_NS = 2 * NS
"""A change that was ordered is in force and read of by then, or it was refused."""
MOST_VOIDS = 2
"""So many stretches in a row that count for nothing are no hiccup of this machine's any more."""
DRAIN_NS = 5 * NS
LONGEST_TIMES = 4
"""A wave whose stretches count for nothing again and again ends after so many times the load that was asked for."""
NOBODY = 20
"""A wave in which so many requests failed and none was answered ends: nobody is there, or what is sent suits nobody."""
ENOUGH = 100
"""So many answers tell whether there are any of what is limited."""
LATE_STAGES = 20
"""Answers of stretches before that many others come too late to steer by."""


class CapacityPilot:
    """Asks the search several times a second, and passes on its orders.

    ``earlier``: the stretches of waves before this one; ``place``: the number and the instant (seconds) with which this
    one goes on. A stretch in which the client was the limit is tried again once; then ``client_limit`` says why (None:
    it was not), and the wave ends where there may be ``more_workers``; else the search goes no higher. ``moved``: why
    the stretch that runs counts for nothing by what its server's instances do, or nothing.
    """

    def __init__(
        self,
        search: Search | UserSearch,
        question: Question,
        rate: Decimal,
        earlier: Sequence[Stretch] = (),
        place: tuple[int, float] = (0, 0.0),
        *,
        more_workers: bool = False,
    ) -> None:
        self.client_limit: str | None = None
        self.moved: Callable[[], str] = str
        self._purposes = {0: search.purpose}
        self._voids: dict[int, str] = {}
        self._search, self._question, self._earlier = search, question, tuple(earlier)
        self._number, self._start_s = place
        self._track = Track()
        self._track.change(self._number, self._start_s, float(rate), search.purpose)
        self._watch, self._metric = ClientWatch(question), shown_metric(question.limits)
        self._rate, self._stage, self._second = rate, 0, 0
        self._starts_s = [0.0]
        self._next_ns = self._pending_ns = 0
        self._ended = self._answers_suit = False
        self._again: Decimal | None = None
        self._moving = False
        self._in_a_row = 0
        self._more_workers, self._goes_on_elsewhere = more_workers, False
        self._longest_ns = int(LONGEST_TIMES * (question.settings.time_s or LONGEST_TIME_S) * NS)
        self._feed: Feed | None = None
        self._users = UserWatch(question.user_limits)

    def orders(self, spool_state: SpoolState, now_ns: int) -> list[Order]:
        """The orders of this moment, mostly none."""
        if self._ended or now_ns < self._next_ns:
            return []
        if self._feed is None and self._question.user_limits:
            spool_state.takers.append(self._users.take)
        self._next_ns, self._feed = now_ns + ASK_NS, spool_state.feed
        self._take(spool_state)
        self._look_at_client(spool_state, now_ns)
        rate = self._wanted(spool_state, now_ns)
        if rate is None:
            return []
        if rate == "end":
            self._ended = True
            return [End()]
        self._pending_ns = now_ns + HEARD_NS
        return [self._question.order(rate, self._rate)]

    def named(self, stage: Counted) -> Counted:
        """A stage of this wave as it was counted, with its purpose and why it counts for nothing.

        What the client did shortly before its end is known only now.
        """
        number = stage.stretch.number
        purpose, void = self._purposes.get(number, self._search.purpose), self._voids.get(number, "")
        if not void and self._feed is not None:
            void = self._watch.late(self._feed, number)
        return replace(stage, stretch=replace(stage.stretch, purpose=purpose, void=void))

    def progress(self, spool_state: SpoolState, now_ns: int) -> str:
        """The line of this moment for the live view."""
        stretches = self.moment(spool_state, now_ns).stretches
        return progress_text(
            self._question.limits, stretches, self._question.settings.time_s, in_users=self._question.in_users
        )

    def moment(self, spool_state: SpoolState, now_ns: int) -> Moment:
        """Everything that is known now, on the clock of the whole search."""
        now_s, in_flight = self._start_s + now_ns / NS, spool_state.feed.in_flight
        return Moment(now_s, (*self._earlier, *self._track.stretches(now_s, in_flight)), in_flight)

    def _take(self, spool_state: SpoolState) -> None:
        """Take in the changes that are in force, and the seconds that are whole by now."""
        for change in spool_state.changes[self._stage :]:
            self._stage += 1
            at_s = change.at_ns / NS
            self._rate, self._pending_ns = change.rate, 0
            self._starts_s.append(at_s)
            self._purposes[self._stage] = self._search.purpose
            number, now_s = self._number + self._stage, self._start_s + at_s
            self._track.change(number, now_s, float(change.rate), self._search.purpose, spool_state.feed.in_flight)
            self._watch.begin(spool_state)
        self._users.sort(self._starts_s)
        for second in range(self._second, spool_state.whole_seconds):
            self._second = second + 1
            for stage in range(max(0, self._stage - LATE_STAGES), self._stage + 1):
                self._add(spool_state, second, stage)

    def _add(self, spool_state: SpoolState, second: int, stage: int) -> None:
        """Add what was sent and answered in a second of the requests of a stage.

        Where it misses a limit on a value of the user's own, that steers the search as if all of them were over.
        """
        begin = max(float(second), self._starts_s[stage])
        stop = float(second + 1)
        if stage < self._stage and self._starts_s[stage + 1] > second:
            stop = min(stop, self._starts_s[stage + 1])
        if begin >= stop:
            return
        cell = spool_state.feed.over(second, second + 1, stage)
        answered = cell.ok + cell.abandoned + cell.errors
        if cell.sent or answered or stage == self._stage:
            counts = tuple(counts_of(limit, cell, self._question.plan.goodput) for limit in self._question.limits)
            if self._users.misses(stage):
                counts = tuple(Count(each.of, each.of) for each in counts)
            start_s, end_s = self._start_s + begin, self._start_s + stop
            spent_s = cell.times[self._metric].total_s if self._metric in cell.times else 0.0
            self._track.add(self._number + stage, Slice(start_s, end_s, cell.sent, answered, counts, spent_s))

    def _look_at_client(self, spool_state: SpoolState, now_ns: int) -> None:
        """Void the stretch in which the client was the limit, or the server's instances changed."""
        reason = self._watch.reason(spool_state, self._stage, now_ns / NS - self._starts_s[-1])
        moved = self.moved()
        void, self._moving = reason or moved, bool(moved)
        if void and self._stage not in self._voids:
            self._voids[self._stage] = void
            self._track.void(void)
            self._in_a_row += bool(reason)
            if self._in_a_row == MOST_VOIDS:
                self.client_limit = reason
                self._goes_on_elsewhere = self._more_workers

    def _wanted(self, spool_state: SpoolState, now_ns: int) -> Decimal | Literal["end"] | None:
        """The rate from now on; nothing is asked for while a change that was ordered is not in force yet."""
        if self._goes_on_elsewhere or now_ns > self._longest_ns or self._tells_nothing(spool_state):
            return "end"
        if now_ns < self._pending_ns:
            return None
        if self._again is not None:
            return self._tried_again(spool_state, now_ns)
        if self._stage in self._voids and self._rate and self._in_a_row < MOST_VOIDS:
            self._again = self._rate
            return Decimal(0)
        order = self._search.order(self.moment(spool_state, now_ns))
        if order is None or order == "end":
            return order
        self._in_a_row = 0
        return self._question.offerable(order)

    def _tells_nothing(self, spool_state: SpoolState) -> bool:
        """Tells whether nobody is there, or answers lack what is limited."""
        ledger = spool_state.ledger
        if not ledger.ok:
            return ledger.failed >= NOBODY
        if self._answers_suit or ledger.ok < ENOUGH:
            return False
        cell = spool_state.feed.total()  # which may be behind the ledger
        if cell.ok < ENOUGH:
            return False
        self._answers_suit = all(counts_of(limit, cell, ()).of for limit in self._question.limits)
        return not self._answers_suit

    def _tried_again(self, spool_state: SpoolState, now_ns: int) -> Decimal | None:
        """The rate whose stretch was void, once nothing is in flight any more and no instances come or go."""
        if self._moving:
            return None
        if spool_state.feed.in_flight and now_ns < self._starts_s[-1] * NS + DRAIN_NS:
            return None
        rate, self._again = self._again, None
        return rate
