"""A small queue in simulated time that a search is played against: servers in order of arrival, seeded."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from server_capacity.experiments.measurements.track import Track
from server_capacity.search.estimate import answer
from server_capacity.search.search import Moment, Search
from server_capacity.search.stretch import Count, Slice, Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from server_capacity.search.answer import Answer
    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings

LOOK_S = 0.5


@dataclass
class Queue:
    """So many servers; ``service`` draws the time that a request takes (seconds)."""

    servers: int
    service: Callable[[random.Random], float]
    free: list[float] = field(default_factory=list)

    def answered_at(self, at_s: float, draw: random.Random) -> float:
        """The instant of the answer to a request that arrives at ``at_s``."""
        self.free = self.free or [0.0] * self.servers
        done = max(at_s, self.free[0]) + self.service(draw)
        heapq.heapreplace(self.free, done)
        return done


@dataclass
class Played:
    """What came of a search."""

    answer: Answer
    stretches: tuple[Stretch, ...]


def play(queue: Queue, limits: Sequence[Limit], settings: Settings, seed: int = 1, client_most: float = 1e9) -> Played:
    """A whole search, whose client cannot send more than ``client_most`` requests/s."""
    wave = _Wave(queue, limits, settings.arrivals == "constant", seed)
    search, track = Search(limits, settings), Track()
    now_s, rate, number = 0.0, search.first_rate, 0
    track.change(0, 0.0, rate, search.purpose)
    while True:
        wave.send(rate, now_s, now_s + LOOK_S, number)
        now_s += LOOK_S
        for stage, part in wave.slices(now_s - LOOK_S, now_s, number):
            track.add(stage, part)
        if rate > client_most:
            track.void("the client was the limit")
        order = search.order(Moment(now_s, track.stretches(now_s, wave.in_flight), wave.in_flight))
        if order == "end":
            break
        if order is not None:
            number, rate = number + 1, order
            track.change(number, now_s, rate, search.purpose, wave.in_flight)
    stretches = track.stretches(now_s, wave.in_flight)
    return Played(answer(limits, settings, stretches), stretches)


class _Wave:
    def __init__(self, queue: Queue, limits: Sequence[Limit], even: bool, seed: int) -> None:
        self.queue, self.limits, self.even = queue, limits, even
        self.draw = random.Random(seed)
        self.next_s = 0.0
        self.open: list[tuple[float, float, int]] = []
        self.sent: dict[int, int] = {}

    def send(self, rate: float, start_s: float, end_s: float, number: int) -> None:
        self.next_s = max(self.next_s, start_s)
        while rate and self.next_s < end_s:
            heapq.heappush(self.open, (self.queue.answered_at(self.next_s, self.draw), self.next_s, number))
            self.sent[number] = self.sent.get(number, 0) + 1
            self.next_s += 1 / rate if self.even else self.draw.expovariate(rate)

    @property
    def in_flight(self) -> int:
        return len(self.open)

    def slices(self, start_s: float, end_s: float, number: int) -> list[tuple[int, Slice]]:
        """Of each stage that something was sent or answered of."""
        times: dict[int, list[float]] = {number: []}
        while self.open and self.open[0][0] <= end_s:
            done_s, at_s, stage = heapq.heappop(self.open)
            times.setdefault(stage, []).append(done_s - at_s)
        sent, self.sent = self.sent, {}
        return [
            (
                stage,
                Slice(
                    start_s,
                    end_s,
                    sent.get(stage, 0),
                    len(of),
                    tuple(self._count(limit, of) for limit in self.limits),
                    sum(of),
                ),
            )
            for stage, of in times.items()
        ]

    def _count(self, limit: Limit, times: list[float]) -> Count:
        bound_s = limit.bound_s
        return Count(len(times), 0 if bound_s is None else sum(time >= bound_s for time in times))
