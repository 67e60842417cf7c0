"""Plays a search against a simulated endpoint, with the feed's delay and the time a change of rate takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.experiments.measurements.evidence import shifted
from server_capacity.experiments.measurements.track import Track
from server_capacity.search.estimate import answer
from server_capacity.search.search import Moment, Search
from server_capacity.search.session_answer import answer_in_sessions
from server_capacity.search.sessions import SessionSearch
from server_capacity.search.stretch import Count, Slice, Stretch
from tests.performance.capacity.queues import Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from server_capacity.search.answer import Answer
    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from tests.performance.capacity.endpoints import Endpoint

    Floats = NDArray[np.float64]

_SLICE_S = 1.0
_GAPS = 4096


@dataclass(frozen=True, slots=True)
class Feed:
    """The wave around the search: how late answers are known, how long a change takes, how often it is asked.

    ``client_most``: the most requests/s that the client can send; a stretch above it counts for nothing.
    """

    delay_s: float = 1.0
    change_s: float = 0.11
    look_s: float = 0.5
    client_most: float | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a search. ``load_s``: seconds of load; ``cpu_s``: of the search and the simulation.

    ``wave``: its requests, and their answers. ``counted``: its own stretches against other limits.
    """

    answer: Answer
    stretches: tuple[Stretch, ...]
    load_s: float
    cpu_s: float
    wave: Wave
    counted: Callable[[Sequence[Limit]], tuple[Stretch, ...]]


@dataclass(frozen=True, slots=True)
class _Stage:
    rate: float
    start_s: float
    first: int
    purpose: str
    void: str


class Wave:
    """Requests in order of arrival, and the endpoint that answers them."""

    def __init__(self, endpoint: Endpoint, seed: int) -> None:
        self._queue = Queue(endpoint.rules, seed)
        # Gaps that are stretched by the rate: whatever rates are sent, request i is the same one of its seed.
        self._random = np.random.default_rng([seed, 1])
        self._dues: Floats = np.empty(0)
        self._due = 0.0
        self._even = endpoint.arrivals == "constant"
        self.limits = endpoint.limits
        self.at: Floats = np.empty(65536)
        self.done: Floats = np.full(65536, np.inf)
        self.count = 0
        self._owed = 0.0

    def send(self, rate: float, start_s: float, end_s: float) -> None:
        """Arrivals at one rate from start to end."""
        at = self._arrivals(rate, start_s, end_s)
        while self.count + len(at) > len(self.at):
            self.at = np.concatenate([self.at, np.empty(len(self.at))])
            self.done = np.concatenate([self.done, np.full(len(self.done), np.inf)])
        self.at[self.count : self.count + len(at)] = at
        self._queue.offer(at, self.count, self.done)
        self.count += len(at)

    def _arrivals(self, rate: float, start_s: float, end_s: float) -> Floats:
        mean = rate * (end_s - start_s)
        if self._even:
            numbers = np.arange(np.ceil(self._owed), np.ceil(self._owed + mean))
            owed, self._owed = self._owed, self._owed + mean
            return np.asarray(start_s + (numbers - owed) / max(rate, 1e-9), dtype=np.float64)
        begin, self._due = self._due, self._due + mean
        while not len(self._dues) or self._dues[-1] < self._due:
            last = self._dues[-1] if len(self._dues) else begin
            self._dues = np.concatenate([self._dues, last + np.cumsum(self._random.exponential(size=_GAPS))])
        now, self._dues = np.split(self._dues, [np.searchsorted(self._dues, self._due)])
        return np.asarray(start_s + (now - begin) / max(rate, 1e-9), dtype=np.float64)

    def settle(self, until_s: float) -> None:
        """Answers up to then become known to the wave."""
        self._queue.settle(until_s, self.done)

    def spent_s(self, ids: NDArray[np.int64]) -> float:
        """The times of answered requests, added up."""
        times = self.done[ids] - self.at[ids]
        return float(times[times > 0].sum())

    def counts(self, ids: NDArray[np.int64]) -> tuple[Count, ...]:
        """Of answered requests, how many were over each limit."""
        done, at = self.done[ids], self.at[ids]
        accepted = done > 0
        times = (done - at)[accepted]
        counts = []
        for limit in self.limits:
            if limit.bound_s is None:
                counts.append(Count(len(ids), int(len(ids) - len(times))))
            else:
                counts.append(Count(len(times), int(np.count_nonzero(times > limit.bound_s))))
        return tuple(counts)


class Pilot:
    """A wave's stages, and what the feed has brought of them."""

    def __init__(self, wave: Wave, feed: Feed) -> None:
        self._wave = wave
        self._feed = feed
        self.stages: list[_Stage] = []
        self.track = Track()
        self._fed_s = 0.0
        self._sent = 0
        self._open: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def change(self, at_s: float, rate: float, purpose: str) -> None:
        """The next stage."""
        void = ""
        if self._feed.client_most is not None and rate > self._feed.client_most:
            void = "the client was the limit"
        self.track.change(len(self.stages), at_s, rate, purpose, self.in_flight)
        if void:
            self.track.void(void)
        self.stages.append(_Stage(rate, at_s, self._wave.count, purpose, void))

    @property
    def in_flight(self) -> int:
        """As the feed knows it."""
        return len(self._open)

    def feed(self, now_s: float) -> None:
        """What is known by now."""
        while self._fed_s + _SLICE_S <= now_s - self._feed.delay_s + 1e-9:
            self._feed_slice(self._fed_s, self._fed_s + _SLICE_S)
            self._fed_s += _SLICE_S

    def _feed_slice(self, start_s: float, end_s: float) -> None:
        wave = self._wave
        sent = int(np.searchsorted(wave.at[: wave.count], end_s))
        new = np.arange(self._sent, sent)
        ids = np.concatenate([self._open, new])
        answered = np.abs(wave.done[ids]) < end_s
        self._open, ids = ids[~answered], ids[answered]
        for number in self._stages_of(ids, start_s):
            stage = self.stages[number]
            last = self.stages[number + 1].first if number + 1 < len(self.stages) else wave.count
            mine = ids[(ids >= stage.first) & (ids < last)]
            count = max(0, min(sent, last) - max(self._sent, stage.first))
            if count or len(mine) or number + 1 == len(self.stages):
                start, end = self._part(number, start_s, end_s)
                self.track.add(number, Slice(start, end, count, len(mine), wave.counts(mine), wave.spent_s(mine)))
        self._sent = sent

    def _stages_of(self, ids: NDArray[np.int64], start_s: float) -> range:
        """The stages that have a part in a slice: from that of its first answer on."""
        first = len(self.stages) - 1
        while first > 0 and (self.stages[first].start_s > start_s or (len(ids) and self.stages[first].first > ids[0])):
            first -= 1
        return range(first, len(self.stages))

    def _part(self, number: int, start_s: float, end_s: float) -> tuple[float, float]:
        """The slice's part within its stage; all of it where answers came after the stage's end."""
        last = number + 1 == len(self.stages)
        ends_s = end_s if last else self.stages[number + 1].start_s
        return max(start_s, self.stages[number].start_s), end_s if ends_s <= start_s else min(end_s, ends_s)

    def exactly(self, end_s: float) -> tuple[Stretch, ...]:
        """All stretches with what was due within their slices."""
        wave = self._wave
        ended = np.sort(np.abs(wave.done[: wave.count]))
        bounds = [(stage.start_s, stage.first) for stage in self.stages[1:]] + [(end_s, wave.count)]
        stretches = []
        before, inherited = 0.0, 0
        for number, (stage, (until_s, last)) in enumerate(zip(self.stages, bounds, strict=True)):
            slices = self._exact_slices(stage, until_s, last)
            in_flight = last - int(np.searchsorted(ended, until_s, side="right"))
            stretches.append(
                Stretch(
                    number,
                    stage.rate,
                    stage.start_s,
                    until_s,
                    slices,
                    stage.purpose,
                    before,
                    in_flight,
                    stage.void,
                    inherited,
                )
            )
            before, inherited = stage.rate, in_flight
        return tuple(stretches)

    def _exact_slices(self, stage: _Stage, until_s: float, last: int) -> tuple[Slice, ...]:
        count = max(1, round((until_s - stage.start_s) / _SLICE_S))
        edges = np.linspace(stage.start_s, until_s, count + 1)
        places = stage.first + np.searchsorted(self._wave.at[stage.first : last], edges)
        places[0], places[-1] = stage.first, last
        slices = []
        for start, end, first, to in zip(edges, edges[1:], places, places[1:], strict=False):
            ids = np.arange(first, to)
            slices.append(
                Slice(float(start), float(end), len(ids), len(ids), self._wave.counts(ids), self._wave.spent_s(ids))
            )
        return tuple(slices)


def play(
    endpoint: Endpoint,
    settings: Settings,
    seed: int,
    feed: Feed | None = None,
    earlier: Sequence[Stretch] = (),
    *,
    alone_s: float | None = None,
) -> Played:
    """One whole search; ``earlier``: what another one sent before, with the counts of this one's limits.

    ``alone_s``: it is that of answers that are generated, which take so long alone.
    """
    feed = feed or Feed()
    began = time.process_time()
    limits = endpoint.limits
    search = Search(limits, settings) if alone_s is None else SessionSearch(limits, settings, alone_s, single=True)

    def answered(stretches: Sequence[Stretch]) -> Answer:
        if alone_s is None:
            return answer(limits, settings, stretches)
        return answer_in_sessions(limits, settings, stretches, alone_s, single=True)

    wave = Wave(endpoint, seed)
    pilot = Pilot(wave, feed)
    number, before_s = (earlier[-1].number + 1, earlier[-1].end_s) if earlier else (0, 0.0)

    def known(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
        return (*earlier, *(shifted(each, number, before_s) for each in stretches))

    now_s = load_s = 0.0
    first = search.resume(earlier) if earlier else search.first_rate
    if first == "end":
        return Played(answered(earlier), tuple(earlier), 0.0, 0.0, wave, lambda _: ())
    rate = first
    pilot.change(0.0, rate, search.purpose)
    change: tuple[float, float] | None = None
    while True:
        until_s = now_s + feed.look_s
        if change is not None:
            at_s = max(now_s, change[0])
            wave.send(rate, now_s, at_s)
            load_s += (at_s - now_s) * (rate > 0)
            now_s, rate = at_s, change[1]
            pilot.change(now_s, rate, search.purpose)
            change = None
        wave.send(rate, now_s, until_s)
        load_s += (until_s - now_s) * (rate > 0)
        now_s = until_s
        wave.settle(now_s)
        pilot.feed(now_s)
        running = known(pilot.track.stretches(now_s, pilot.in_flight))
        order = search.order(Moment(before_s + now_s, running, pilot.in_flight))
        if order == "end":
            break
        if order is not None:
            change = (now_s + feed.change_s, order)
    wave.settle(np.inf)

    def counted(limits: Sequence[Limit]) -> tuple[Stretch, ...]:
        wave.limits = tuple(limits)
        return pilot.exactly(now_s)

    stretches = known(counted(limits))
    return Played(answered(stretches), stretches, load_s, time.process_time() - began, wave, counted)
