"""Steers the adaptive wave: what the workers report becomes slices, what the search orders becomes a rate."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.engine.pilot import End
from inference_benchmarker.words.units import NS
from server_capacity.experiments.capacity.progress import progress_text
from server_capacity.experiments.capacity.voids import Voids
from server_capacity.experiments.capacity.wave_track import WaveTrack
from server_capacity.experiments.measurements.live_counts import counts_of
from server_capacity.search.settings import LONGEST_TIME_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.engine.pilot import Order
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.measurements.user_count_search import AnySearch
    from server_capacity.search.search import Moment
    from server_capacity.search.stretch import Stretch

ASK_NS = NS // 5
HEARD_NS = 2 * NS
"""A change that was ordered is in force and read of by then, or it was refused."""
LONGEST_TIMES = 4
"""A wave whose stretches count for nothing again and again ends after so many times the load that was asked for."""
NOBODY = 20
"""A wave in which so many requests failed and none was answered ends: nobody is there, or what is sent suits nobody."""
ENOUGH = 100
"""So many answers tell whether there are any of what is limited."""


class CapacityPilot:
    """Asks the search several times a second, and passes on its orders.

    ``earlier``: the stretches of waves before this one; ``place``: the number and the instant (seconds) with which this
    one goes on. A stretch in which the client was the limit is tried again once; then ``client_limit`` says why (None:
    it was not), and the wave ends where there may be ``more_workers``; else the search goes no higher. ``moved``: why
    the stretch that runs counts for nothing by what its server's instances do, or nothing.
    """

    def __init__(
        self,
        search: AnySearch,
        question: Question,
        rate: Decimal,
        earlier: Sequence[Stretch] = (),
        place: tuple[int, float] = (0, 0.0),
        *,
        more_workers: bool = False,
    ) -> None:
        self.moved: Callable[[], str] = str
        self._search, self._question, self._more_workers = search, question, more_workers
        self._track = WaveTrack(question, rate, search.purpose, earlier, place)
        self._voids = Voids(question)
        self._rate = rate
        self._next_ns = self._pending_ns = 0
        self._is_over = self._answers_suit = False
        self._longest_ns = int(LONGEST_TIMES * (question.settings.time_s or LONGEST_TIME_S) * NS)

    @property
    def client_limit(self) -> str | None:
        """Why the client is the limit; None where it is not."""
        return self._voids.client_limit

    def orders(self, spool_state: SpoolState, now_ns: int) -> list[Order]:
        """The orders of this moment, mostly none."""
        if self._is_over or now_ns < self._next_ns:
            return []
        self._next_ns = now_ns + ASK_NS
        for change in self._track.take(spool_state, self._search.purpose):
            self._rate, self._pending_ns = change.rate, 0
            self._voids.begin(spool_state)
        self._voids.look(spool_state, self._track, now_ns, self.moved())
        rate = self._wanted(spool_state, now_ns)
        if rate is None:
            return []
        if rate == "end":
            self._is_over = True
            return [End()]
        self._pending_ns = now_ns + HEARD_NS
        return [self._question.order(rate, self._rate)]

    def named(self, stage: Counted) -> Counted:
        """A stage of this wave as it was counted, with its purpose and why it counts for nothing."""
        number = stage.stretch.number
        purpose, void = self._track.purpose(number), self._voids.reason(number, self._track.feed)
        purpose = self._search.purpose if purpose is None else purpose
        return replace(stage, stretch=replace(stage.stretch, purpose=purpose, void=void))

    def progress(self, spool_state: SpoolState, now_ns: int) -> str:
        """The line of this moment for the live view."""
        stretches = self.moment(spool_state, now_ns).stretches
        asked_s, unit = self._question.settings.time_s, self._question.unit
        time_s = None if asked_s is None else asked_s + self._search.beside_s
        return progress_text(self._question.limits, stretches, time_s, unit)

    def moment(self, spool_state: SpoolState, now_ns: int) -> Moment:
        """Everything that is known now, on the clock of the whole search."""
        return self._track.moment(spool_state, now_ns)

    def _wanted(self, spool_state: SpoolState, now_ns: int) -> Decimal | Literal["end"] | None:
        """The rate from now on; nothing is asked for while a change that was ordered is not in force yet."""
        goes_on_elsewhere = self._more_workers and self.client_limit is not None
        if goes_on_elsewhere or now_ns > self._longest_ns or self._tells_nothing(spool_state):
            return "end"
        if now_ns < self._pending_ns:
            return None
        if self._voids.is_pausing:
            return self._voids.rate_again(self._track.open(spool_state), now_ns - self._track.stage_start_s * NS)
        if self._voids.pause(self._track.stage, self._rate):
            return Decimal(0)
        order = self._search.order(self.moment(spool_state, now_ns))
        if order is None or order == "end":
            return order
        self._voids.forget()
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
        limits = (limit for limit in self._question.limits if not limit.is_on_sessions)
        self._answers_suit = all(counts_of(limit, cell, ()).of for limit in limits)
        return not self._answers_suit
