"""The stretches of a wave that count for nothing, and the rates that are offered again because of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.client_limit import ClientWatch

if TYPE_CHECKING:
    from decimal import Decimal

    from inference_benchmarker.records.feed import Feed
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from server_capacity.experiments.capacity.wave_track import WaveTrack
    from server_capacity.experiments.measurements.question import Question

MOST_VOIDS = 2
"""So many stretches in a row that count for nothing are a persistent bottleneck of this machine."""
DRAIN_NS = 5 * NS


class Voids:
    """Voids a stretch in which the client was the limit, or the server's instances changed.

    The first in a row is tried again. ``client_limit``: why the client is the limit, once ``MOST_VOIDS`` in a row were
    void because of it; None before.
    """

    def __init__(self, question: Question) -> None:
        self.client_limit: str | None = None
        self._watch = ClientWatch(question)
        self._reasons: dict[int, str] = {}
        self._in_a_row = 0
        self._again: Decimal | None = None
        self._is_moving = False

    def reason(self, stage: int, feed: Feed | None) -> str:
        """Why a stage counts for nothing, or nothing. What the client did shortly before its end is known only now."""
        void = self._reasons.get(stage, "")
        return void if void or feed is None else self._watch.late(feed, stage)

    def begin(self, spool_state: SpoolState) -> None:
        """A stage begins."""
        self._watch.begin(spool_state)

    def look(self, spool_state: SpoolState, track: WaveTrack, now_ns: int, moved: str) -> None:
        """Look at the stretch that runs; ``moved``: why it counts for nothing by what instances do, or nothing."""
        reason = self._watch.reason(spool_state, track.stage, now_ns / NS - track.stage_start_s)
        void, self._is_moving = reason or moved, bool(moved)
        if void and track.stage not in self._reasons:
            self._reasons[track.stage] = void
            track.void(void)
            self._in_a_row += bool(reason)
            if self._in_a_row == MOST_VOIDS:
                self.client_limit = reason

    def pause(self, stage: int, rate: Decimal) -> bool:
        """Tells whether the load pauses now, since the stage that runs is void and its rate will be offered again."""
        if stage not in self._reasons or not rate or self._in_a_row >= MOST_VOIDS:
            return False
        self._again = rate
        return True

    @property
    def is_pausing(self) -> bool:
        """Tells whether a rate waits to be offered again."""
        return self._again is not None

    def rate_again(self, in_flight: int, paused_ns: float) -> Decimal | None:
        """The rate whose stretch was void, once nothing is in flight any more and no instances come or go.

        ``paused_ns``: for how long the load has paused.
        """
        if self._is_moving or (in_flight and paused_ns < DRAIN_NS):
            return None
        rate, self._again = self._again, None
        return rate

    def forget(self) -> None:
        """A stretch counted: those void before it were not in a row."""
        self._in_a_row = 0
