"""The stretches of the wave that runs, made of what its workers report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.counting import SPENT
from server_capacity.experiments.measurements.live_counts import UserWatch, counts_of
from server_capacity.experiments.measurements.live_sessions import SessionWatch
from server_capacity.experiments.measurements.track import Track
from server_capacity.search.search import Moment
from server_capacity.search.stretch import Count, Slice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from inference_benchmarker.plan.steering import RateChange
    from inference_benchmarker.records.feed import Cell, Feed
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.stretch import Stretch

LATE_STAGES = 20
"""Answers of stretches before that many others come too late to steer by."""


class WaveTrack:
    """Its stages as stretches, beside those of ``earlier`` waves.

    ``place``: the number and the instant (seconds) with which this wave goes on. ``feed``: None until it is heard of.
    """

    def __init__(
        self, question: Question, rate: Decimal, purpose: str, earlier: Sequence[Stretch], place: tuple[int, float]
    ) -> None:
        self.feed: Feed | None = None
        self._question, self._earlier = question, tuple(earlier)
        self._number, self._start_s = place
        self._users = UserWatch(question.user_limits)
        self._sessions = None if question.sessions is None else SessionWatch(question.limits)
        self._track = Track()
        self._track.change(self._number, self._start_s, float(rate), purpose)
        self._starts_s = [0.0]
        self._purposes = {0: purpose}
        self._second = 0

    @property
    def stage(self) -> int:
        """The number of the stage that runs, from 0 on."""
        return len(self._starts_s) - 1

    @property
    def stage_start_s(self) -> float:
        """Its start, seconds after the wave's."""
        return self._starts_s[-1]

    def purpose(self, stage: int) -> str | None:
        """The purpose of a stage of this wave; None for one that it never had."""
        return self._purposes.get(stage)

    def open(self, spool_state: SpoolState) -> int:
        """The requests in flight; where arrivals are sessions, those that are open."""
        return spool_state.feed.in_flight if self._sessions is None else spool_state.ledger.sessions_open

    def moment(self, spool_state: SpoolState, now_ns: int) -> Moment:
        """Everything that is known now, on the clock of the whole search."""
        now_s, in_flight = self._start_s + now_ns / NS, self.open(spool_state)
        return Moment(now_s, (*self._earlier, *self._track.stretches(now_s, in_flight)), in_flight)

    def void(self, reason: str) -> None:
        """Let the stretch that runs count for nothing."""
        self._track.void(reason)

    def take(self, spool_state: SpoolState, purpose: str) -> Sequence[RateChange]:
        """Take the changes that are in force, each begun for ``purpose``, and the seconds that are whole by now.

        Returns the changes.
        """
        if self.feed is None and self._question.user_limits:
            spool_state.takers.append(self._users.take)
        if self.feed is None and self._sessions is not None:
            spool_state.turn_takers.append(self._sessions.take)
        self.feed = spool_state.feed
        changes = spool_state.changes[self.stage :]
        for change in changes:
            at_s = change.at_ns / NS
            self._starts_s.append(at_s)
            self._purposes[self.stage] = purpose
            number, now_s = self._number + self.stage, self._start_s + at_s
            self._track.change(number, now_s, float(change.rate), purpose, self.open(spool_state))
        self._users.sort(self._starts_s)
        for second in range(self._second, spool_state.whole_seconds):
            self._second = second + 1
            if self._sessions is not None:
                self._add_sessions(self._sessions, second)
                continue
            if self._question.alone is not None:
                self._add_ended(spool_state, second)
                continue
            for stage in range(max(0, self.stage - LATE_STAGES), self.stage + 1):
                self._add(spool_state, second, stage)
        return changes

    def _add_sessions(self, sessions: SessionWatch, second: int) -> None:
        """Add a second to the stage in which it ends: turns of sessions follow a change of the rate only slowly."""
        stage = sum(start < second + 1 for start in self._starts_s) - 1
        begin = max(float(second), self._starts_s[stage])
        part = sessions.slice(second, self._start_s + begin, self._start_s + second + 1)
        if self._users.misses(stage):
            part = replace(part, counts=tuple(Count(each.of, each.of) for each in part.counts))
        self._track.add(self._number + stage, part)

    def _add_ended(self, spool_state: SpoolState, second: int) -> None:
        """Add a second of all requests to the stage in which it ends, as of sessions."""
        stage = sum(start < second + 1 for start in self._starts_s) - 1
        begin = max(float(second), self._starts_s[stage])
        self._add_cell(stage, begin, float(second + 1), spool_state.feed.over(second, second + 1))

    def _add(self, spool_state: SpoolState, second: int, stage: int) -> None:
        """Add what was sent and answered in a second of the requests of a stage.

        Where it misses a limit on a value of the user's own, that steers the search as if all of them were over.
        """
        begin = max(float(second), self._starts_s[stage])
        stop = float(second + 1)
        if stage < self.stage and self._starts_s[stage + 1] > second:
            stop = min(stop, self._starts_s[stage + 1])
        if begin >= stop:
            return
        self._add_cell(stage, begin, stop, spool_state.feed.over(second, second + 1, stage))

    def _add_cell(self, stage: int, begin: float, stop: float, cell: Cell) -> None:
        answered = cell.ok + cell.abandoned + cell.errors
        if cell.sent or answered or stage == self.stage:
            counts = tuple(counts_of(limit, cell, self._question.plan.goodput) for limit in self._question.limits)
            if self._users.misses(stage):
                counts = tuple(Count(each.of, each.of) for each in counts)
            start_s, end_s = self._start_s + begin, self._start_s + stop
            spent_s = cell.times[SPENT].total_s if SPENT in cell.times else 0.0
            self._track.add(self._number + stage, Slice(start_s, end_s, cell.sent, answered, counts, spent_s))
