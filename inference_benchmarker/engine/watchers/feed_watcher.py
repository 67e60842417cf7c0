"""Follows what the workers of a running wave report, in the process that leads it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inference_benchmarker.engine.watchers.abort_judge import AbortJudge
from inference_benchmarker.engine.watchers.running_wave import Every
from inference_benchmarker.words.wording import pluralize

if TYPE_CHECKING:
    from inference_benchmarker.engine.pilot import Pilot
    from inference_benchmarker.engine.watchers.running_wave import RunningWave

LIVE_INTERVAL_S = 0.5
DEAD_DRAIN_S = 3.0  # what is in flight to an endpoint that takes no connection any more is hardly answered


class FeedWatcher:
    """One of the wave's ``watchers``: asks who steers the wave, shows it, and ends it early where its plan says so."""

    def __init__(self, wave: RunningWave, pilot: Pilot | None) -> None:
        self._wave = wave
        self._pilot = pilot
        self._begun_s = time.monotonic()
        self._time = Every(LIVE_INTERVAL_S)
        self._abort_judge = AbortJudge(wave.plan)

    def show_at_once(self) -> None:
        """Something changed that is to be seen."""
        self._time.at_once()

    def look(self, now_s: float) -> None:
        """Ask the pilot in each pass; show how the wave is every half second."""
        wave = self._wave
        if wave.now_ns is not None and not wave.is_interrupted:
            self._ask_pilot(wave.now_ns)
        if not self._time.due(now_s):
            return
        if wave.now_ns is None:
            wave.live.starting(self._waited_for(), now_s - self._begun_s)
            return
        wave.spool_state.read()
        wave.live.update(wave.spool_state, wave.now_ns)
        if not wave.ended_early and not wave.is_interrupted and not self._has_sent_all(wave.now_ns):
            self._look_for_abort()

    def _ask_pilot(self, now_ns: int) -> None:
        """Pass on the orders of whoever steers the wave, and show what follows at once."""
        for order in () if self._pilot is None else self._pilot.orders(self._wave.spool_state, now_ns):
            self._wave.primary.tell(order.command)
            self.show_at_once()

    def _waited_for(self) -> str:
        workers = self._wave.plan.workers
        ready = workers - len(self._wave.missing)
        return f"Loading the endpoint's code: {ready} of {pluralize(workers, 'worker is', 'workers are')} ready."

    def _has_sent_all(self, now_ns: int) -> bool:
        state, bounds = self._wave.spool_state, self._wave.plan.bounds
        over = (state.planned_end, bounds.duration_ns)
        if any(end is not None and now_ns >= end for end in over):
            return True
        ledger = state.ledger
        return bounds.num_requests is not None and ledger.arrivals + ledger.dropped >= bounds.num_requests

    def _look_for_abort(self) -> None:
        """End the wave early where its plan says so."""
        wave = self._wave
        aborted = self._abort_judge.look(wave.spool_state.feed, wave.spool_state.whole_seconds)
        if aborted is None:
            return
        wave.end_early(aborted)
        wave.live.say("Waiting for requests in flight.")
        if aborted.by_dead_endpoint:
            wave.drained_by = time.monotonic() + DEAD_DRAIN_S
