"""The measurements of a wave, counted from its records: of each stage its slices, by when requests were due."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.summary.samples import Streams, samples
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.judging import columns_of, judged, timed_rows
from server_capacity.experiments.measurements.session_ends import ENDS, SessionEnds
from server_capacity.search.limits import TIMES
from server_capacity.search.stretch import Count, Slice, Stretch
from server_capacity.search.user_limits import Sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import RequestLimit
    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from server_capacity.search.limits import Limit
    from server_capacity.search.user_limits import UserLimit

SLICE_S = 1.0
SPENT = "latency"
"""The time of an answer, whatever time is limited: by it and the rate, so many are in flight."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A stage of a wave, or a wave of one rate.

    ``failed``: requests due in it; ``times``: of the metric shown; ``completed``: answers that came in it, to whomever;
    ``users``: of each limit on a value of the user's own what the ok requests of each slice reported.
    """

    stretch: Stretch
    failed: int
    times: Distribution | None
    completed: int = 0
    users: tuple[tuple[Sums, ...], ...] = ()


def shown_metric(limits: Sequence[Limit]) -> str:
    """The time that is shown against the rate: the first that is limited, else the response time."""
    return next((limit.metric for limit in limits if limit.metric in TIMES), "response_time")


def count_stages(wave: WaveFacts, limits: Sequence[Limit], users: Sequence[UserLimit] = ()) -> list[Counted]:
    """The wave's stages: each request counts where it was due, whenever it was answered.

    Times are seconds after wave start. What nobody waited for counts as over a time where it was older by then.
    """
    rates, spans = _stages(wave)
    edges = [_edges(*span) for span in spans]
    counts = _Counts.of(wave, limits, edges, users)
    first, found = 0, []
    for number, (rate, span, mine) in enumerate(zip(rates, spans, edges, strict=True)):
        stop = first + len(mine) - 1
        slices, in_flight = tuple(counts.slices(first, stop)), int(counts.in_flight[stop])
        before, inherited = (rates[number - 1], int(counts.in_flight[first])) if number else (0.0, 0)
        start_s, end_s = span[0] / NS, span[1] / NS
        stretch = Stretch(number, rate, start_s, end_s, slices, "", before, in_flight, inherited=inherited)
        failed = int(counts.failed[first:stop].sum())
        completed = int(counts.done_by[stop] - counts.done_by[first])
        user_sums = tuple(
            tuple(Sums(int(of), *sums) for of, *sums in each.T[first:stop].tolist()) for each in counts.user_sums
        )
        found.append(Counted(stretch, failed, counts.times[number].distribution(), completed, user_sums))
        first = stop
    return found


def _stages(wave: WaveFacts) -> tuple[list[float], list[tuple[int, int]]]:
    """The rates that were offered, or the numbers of users, and from when to when (ns after wave start)."""
    load, end = wave.plan.load, wave.window.planned_ns or wave.window.duration_ns
    if isinstance(load, ClosedLoop):
        lengths = [(each.users, int(each.duration_s * NS)) for each in load.populations]
        lengths = lengths or [(load.concurrency, max(end, 1))]
        ends = [0, *accumulate(length for _, length in lengths)]
        return [float(users) for users, _ in lengths], list(pairwise(ends))
    if not load.stages:
        return [float(load.rate)], [(0, max(end, 1))]
    ends = [0, *accumulate(stage.duration_ns for stage in load.stages)]
    return [float(stage.from_rps) for stage in load.stages], list(pairwise(ends))


def _edges(start: int, end: int) -> list[int]:
    """The edges of a stage's slices: of equal length, about a second."""
    number = max(1, round((end - start) / NS / SLICE_S))
    return [start + (end - start) * place // number for place in range(number + 1)]


class _Counts:
    """Counts between edges (ns after wave start): arrays of one number for each slice, a pair for each limit.

    ``in_flight`` and ``done_by`` (answers until then): at each edge. ``times``: of each stage; ``spent_ns``: those of
    answers added up, whole nanoseconds. ``user_sums``: of each of the ``users``' limits the rows of its ``Sums``.
    """

    def __init__(
        self, edges: list[list[int]], limits: Sequence[Limit], users: Sequence[UserLimit], *, sessions: bool = False
    ) -> None:
        flat = [edge for each in edges for edge in each[:-1]] + edges[-1][-1:]
        number = len(flat) - 1
        self.edges, self._limits, self._metric = np.array(flat), limits, shown_metric(limits)
        self._sessions = sessions
        self.sent, self.answered, self.failed = (np.zeros(number, np.int64) for _ in range(3))
        self.in_flight, self.done_by = (np.zeros(number + 1, np.int64) for _ in range(2))
        self.spent_ns = np.zeros(number)
        self._users, self.user_sums = users, [np.zeros((3, number)) for _ in users]
        self.pairs = [np.zeros((2, number), np.int64) for _ in limits]
        self.times = [StreamingHistogram() for _ in edges]
        self._stage = np.repeat(np.arange(len(edges)), [len(each) - 1 for each in edges])

    @classmethod
    def of(
        cls, wave: WaveFacts, limits: Sequence[Limit], edges: list[list[int]], users: Sequence[UserLimit]
    ) -> _Counts:
        """Goes through the records once."""
        metrics = [PREFIX + name for name in wave.records.metrics]
        sessions = wave.has_sessions
        counts = cls(edges, limits, users, sessions=sessions)
        streams, goodput = Streams.of(wave.records), wave.plan.goodput
        ends = ENDS if sessions else ()
        for part in wave.records.parts(*dict.fromkeys((*columns_of(streams, goodput), *ends)), *metrics):
            counts._add(part, goodput, streams)
        return counts

    def slices(self, first: int, stop: int) -> Iterator[Slice]:
        """Those of a stage."""
        for place in range(first, stop):
            pairs = tuple(Count(int(of[place]), int(over[place])) for of, over in self.pairs)
            start_s, end_s = (float(edge) / NS for edge in self.edges[place : place + 2])
            sent, answered = int(self.sent[place]), int(self.answered[place])
            yield Slice(start_s, end_s, sent, answered, pairs, self.spent_ns[place] / NS)

    def _add(self, part: Records, goodput: Sequence[RequestLimit], streams: Streams) -> None:
        place = np.searchsorted(self.edges, part.arrived, "right") - 1
        inside = (place >= 0) & (place < len(self.sent))
        abandoned = part.outcome("abandoned")
        if self._sessions:
            self._add_sessions(part)
        else:
            self.sent += self._per_slice(place, inside)
            self.answered += self._per_slice(place, inside & ~abandoned)
            self.failed += self._per_slice(place, inside & part.outcome("failed"))
            done_by = np.searchsorted(np.sort(part.int("done")[~abandoned]), self.edges)
            self.in_flight += np.searchsorted(np.sort(part.int("sent")), self.edges) - done_by
            self.done_by += done_by
        times = dict(samples(part, open_loop=True, streams=streams))
        if self._metric in times:
            self._add_times(place, inside, *timed_rows(part, times[self._metric]))
        if SPENT in times and not self._sessions:
            rows, seconds = timed_rows(part, times[SPENT])
            ours = inside[rows]
            self.spent_ns += np.bincount(place[rows[ours]], np.rint(seconds[ours] * NS), len(self.spent_ns))
        for limit, pair in zip(self._limits, self.pairs, strict=True):
            if limit.is_on_sessions:
                continue
            for rows, over in judged(part, limit, goodput, times):
                pair[0] += self._per_slice(place[rows], inside[rows])
                pair[1] += self._per_slice(place[rows], inside[rows] & over)

        for user, sums in zip(self._users, self.user_sums, strict=True):
            self._add_reported(user, sums, part, place, inside & part.outcome("ok"))

    def _add_sessions(self, part: Records) -> None:
        """Count sessions where they began; against their limits where they ended, or were too long while open."""
        ended = SessionEnds.of(part)
        begun, inside = self._place(ended.begun)
        over = ended.is_over
        self.sent += self._per_slice(begun, inside)
        self.answered += self._per_slice(begun, inside & over)
        self.failed += self._per_slice(begun, inside & over & ~ended.completed)
        self.spent_ns += np.bincount(begun[inside & over], ended.lengths[inside & over], len(self.spent_ns))
        done_by = np.searchsorted(np.sort(ended.done[over]), self.edges)
        self.in_flight += np.searchsorted(np.sort(ended.begun), self.edges) - done_by
        self.done_by += done_by
        for limit, pair in zip(self._limits, self.pairs, strict=True):
            if limit.is_on_sessions:
                at, known, beyond = ended.judged(limit, int(self.edges[-1]))
                place, within = self._place(at)
                pair[0] += self._per_slice(place, within & known)
                pair[1] += self._per_slice(place, within & known & beyond)

    def _place(self, instants: Int64) -> tuple[Int64, Mask]:
        """The slice of each instant, and which are in one."""
        place = np.searchsorted(self.edges, instants, "right") - 1
        return place, (place >= 0) & (place < len(self.sent))

    def _add_reported(
        self, user: UserLimit, sums: npt.NDArray[np.float64], part: Records, place: Int64, where: Mask
    ) -> None:
        """Add what the requests reported for a limit's metric, if they have it."""
        if user.metric not in part.table.column_names:
            return
        rows = np.flatnonzero(where & part.has(user.metric))
        scores = user.scores(part.metric(user.metric.removeprefix(PREFIX))[rows])
        sums += [np.bincount(place[rows], weights, sums.shape[1]) for weights in (None, scores, scores * scores)]

    def _add_times(self, place: Int64, inside: Mask, rows: Int64, values: Floats) -> None:
        rows, values = rows[inside[rows]], values[inside[rows]]
        stages = self._stage[place[rows]]
        for stage in np.unique(stages).tolist():
            self.times[stage].add(values[stages == stage])

    def _per_slice(self, place: Int64, where: Mask) -> Int64:
        return np.bincount(place[where], minlength=len(self.sent))
