"""A closed queue whose truth has a closed form, in simulated time, and searches of it in users."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from heapq import heapify, heappop, heappush
from random import Random
from typing import TYPE_CHECKING

from server_capacity.experiments.measurements.track import Track
from server_capacity.search.limits import Limit
from server_capacity.search.search import Moment
from server_capacity.search.stretch import Count, Slice
from server_capacity.search.users import UserSearch, answer_in_users

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.answer import Answer
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

LIMIT = Limit("p99<200ms", "latency", 0.01, 0.2)
SERVICE_S, SERVERS = 0.02, 4
TRUTHS = {0.2: 57, 1.0: 199, 5.0: 900}
"""By think time in seconds the most users whose p99 is below 200 ms: M/M/4//N, see ``over_of``."""


def over_of(users: int, limit_s: float, think_s: float) -> float:
    """The share of answers that take longer, in a closed queue of exponential servers and think times.

    An arriving user finds the queue as one user fewer would leave it (Lavenberg and Reiser, 1980).
    """
    rate, weights = 1 / SERVICE_S, [0.0]
    for number in range(users - 1):
        more = math.log((users - 1 - number) / think_s) - math.log(rate * min(number + 1, SERVERS))
        weights.append(weights[-1] + more)
    shares = [math.exp(weight - max(weights)) for weight in weights]
    total = sum(shares)
    return sum(share / total * _waits_longer(found, limit_s, rate) for found, share in enumerate(shares))


def _waits_longer(found: int, limit_s: float, rate: float) -> float:
    """Service alone, or the Erlang time of those before and the own service, by steps of their convolution."""
    if found < SERVERS:
        return math.exp(-rate * limit_s)
    ahead, step = found - SERVERS + 1, limit_s / 400
    fast = SERVERS * rate
    density = (
        math.exp(ahead * math.log(fast) + (ahead - 1) * math.log(at) - fast * at - math.lgamma(ahead))
        for at in (step * (place + 0.5) for place in range(400))
    )
    inside = [(step * each, step * (place + 0.5)) for place, each in enumerate(density)]
    return 1 - sum(mass * (1 - math.exp(-rate * (limit_s - at))) for mass, at in inside)


class ClosedQueue:
    """Users who think and exponential servers, in simulated time, steered as the pilot of a real wave is."""

    def __init__(self, seed: int, think_s: float) -> None:
        self._random, self._think_s = Random(seed), think_s
        self._thinking: list[float] = []
        self._waiting: deque[tuple[float, int]] = deque()
        self._served: list[tuple[float, float, int]] = []
        self._users = self._wanted = self.stage = 0
        self.cells: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0])

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return len(self._waiting) + len(self._served)

    def change(self, users: int, now: float) -> None:
        """New users have thought for long; of those who are too many, who thinks leaves at once."""
        self._wanted = users
        for _ in range(users - self._users):
            self._think(now)
            self._users += 1
        leaving = min(len(self._thinking), max(0, self._users - users))
        self._thinking = self._random.sample(self._thinking, len(self._thinking) - leaving)
        heapify(self._thinking)
        self._users -= leaving

    def run_until(self, end: float) -> None:
        """Everything that happens by then."""
        while (now := min(self._thinking[:1] + [each[0] for each in self._served[:1]], default=end)) < end:
            if self._thinking and now == self._thinking[0]:
                heappop(self._thinking)
                self.cells[int(now), self.stage][0] += 1
                self._waiting.append((now, self.stage))
            else:
                _, sent, stage = heappop(self._served)
                cell = self.cells[int(now), stage]
                cell[1] += 1
                cell[2] += now - sent >= 0.2
                if self._users > self._wanted:
                    self._users -= 1
                else:
                    self._think(now)
            while self._waiting and len(self._served) < SERVERS:
                heappush(self._served, (now + self._random.expovariate(1 / SERVICE_S), *self._waiting.popleft()))

    def _think(self, now: float) -> None:
        heappush(self._thinking, now + self._random.expovariate(1 / self._think_s))


def searched(seed: int, settings: Settings, think_s: float) -> tuple[Answer, Sequence[Stretch]]:
    """A search against the simulated endpoint; reports come in 0.7 s late."""
    search, queue, track = UserSearch([LIMIT], settings, think_s), ClosedQueue(seed, think_s), Track()
    starts, second, now = [0.0], 0, 0.0
    queue.change(int(search.first_rate), 0.0)
    track.change(0, 0.0, search.first_rate, search.purpose)
    while True:
        now += 0.25
        queue.run_until(now)
        while second < int(now - 0.7):
            for stage, start in enumerate(starts):
                stop = starts[stage + 1] if stage + 1 < len(starts) else math.inf
                sent, answered, over = queue.cells.get((second, stage), (0, 0, 0))
                begin, end = max(second, start), min(second + 1, stop) if stop > second else second + 1
                if begin < end and (answered or sent or stage == queue.stage):
                    track.add(stage, Slice(begin, end, sent, answered, (Count(answered, over),)))
            second += 1
        stretches = track.stretches(now, queue.in_flight)
        order = search.order(Moment(now, stretches, queue.in_flight))
        if order == "end":
            return answer_in_users([LIMIT], settings, stretches, think_s), stretches
        if order is not None:
            queue.stage += 1
            track.change(queue.stage, now, order, search.purpose, queue.in_flight)
            starts.append(now)
            queue.change(int(order), now)
