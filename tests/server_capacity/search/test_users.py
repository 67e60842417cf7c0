"""Searches in users: of a simulated closed queue whose truth has a closed form, and the estimate of a crossing."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import replace
from heapq import heapify, heappop, heappush
from random import Random
from typing import TYPE_CHECKING

import pytest

from server_capacity.search.blocks import Block
from server_capacity.search.crossing import crossing
from server_capacity.search.limits import Limit
from server_capacity.search.search import Moment
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Count, Slice, Stretch
from server_capacity.search.track import Track
from server_capacity.search.users import UserSearch, answer_in_users, known_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from server_capacity.search.answer import Answer

LIMIT = Limit("p99<200ms", "latency", 0.01, 0.2)
SERVICE_S, SERVERS, THINK_S = 0.02, 4, 1.0
TRUTH = 199
"""The most users whose p99 is below 200 ms: M/M/4//N by the arrival theorem, see ``over_of``."""


def over_of(users: int, limit_s: float) -> float:
    """The share of answers that take longer, in a closed queue of exponential servers and think times.

    An arriving user finds the queue as one user fewer would leave it (Lavenberg and Reiser, 1980).
    """
    rate, weights = 1 / SERVICE_S, [0.0]
    for number in range(users - 1):
        more = math.log((users - 1 - number) / THINK_S) - math.log(rate * min(number + 1, SERVERS))
        weights.append(weights[-1] + more)
    shares = [math.exp(weight - max(weights)) for weight in weights]
    total = sum(shares)
    return sum(share / total * waits_longer(found, limit_s, rate) for found, share in enumerate(shares))


def waits_longer(found: int, limit_s: float, rate: float) -> float:
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


def test_the_truth_of_the_simulated_endpoint() -> None:
    assert over_of(TRUTH, 0.2) <= 0.01 < over_of(TRUTH + 1, 0.2)


class ClosedQueue:
    """Users who think and exponential servers, in simulated time, steered as the pilot of a real wave is."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
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
        heappush(self._thinking, now + self._random.expovariate(1 / THINK_S))


def searched(seed: int, settings: Settings) -> tuple[Answer, Sequence[Stretch]]:
    """A search against the simulated endpoint; reports come in 0.7 s late."""
    search, queue, track = UserSearch([LIMIT], settings, THINK_S), ClosedQueue(seed), Track()
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
            return answer_in_users([LIMIT], settings, stretches, THINK_S), stretches
        if order is not None:
            queue.stage += 1
            track.change(queue.stage, now, order, search.purpose, queue.in_flight)
            starts.append(now)
            queue.change(int(order), now)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_search_finds_the_population_of_a_closed_queue(seed: int) -> None:
    found, stretches = searched(seed, Settings(time_s=120))
    assert (found.outcome, found.limit) == ("found", "p99<200ms")
    assert found.rate is not None
    assert found.interval is not None
    assert found.interval.low <= TRUTH <= found.interval.high
    assert found.rate == int(found.rate)
    assert 0.85 * TRUTH < found.rate < 1.15 * TRUTH
    assert all(stretch.rate == int(stretch.rate) for stretch in stretches)
    assert sum(stretch.seconds for stretch in stretches if stretch.rate) == pytest.approx(120, abs=1)


def test_a_search_goes_no_higher_than_it_may() -> None:
    found, stretches = searched(1, Settings(max_rps=50))
    assert (found.outcome, found.at_least) == ("at_least", 50)
    assert max(stretch.rate for stretch in stretches) == 50


def stretch(users: float, over: Callable[[int], int], number: int = 0, seconds: int = 40, of: int = 100) -> Stretch:
    slices = tuple(Slice(second, second + 1, of, of, (Count(of, over(second)),)) for second in range(seconds))
    return Stretch(number, users, 0, seconds, slices, "near", users, in_flight=5)


def test_one_user_who_breaks_the_limit_is_too_many() -> None:
    search = UserSearch([LIMIT], Settings(), 0.0)
    broken = stretch(1, lambda _: 50)
    assert search.order(Moment(40, [broken], 1)) == "end"
    found = answer_in_users([LIMIT], Settings(), [broken], 0.0)
    assert (found.outcome, found.reason) == ("not_kept", "one user alone breaks p99<200ms")


def test_what_counts_for_nothing_changes_no_answer() -> None:
    kept, broken = stretch(10, lambda _: 0), stretch(12, lambda _: 9, 1)
    void = replace(stretch(5, lambda _: 90, 2), void="the client was the limit")
    answers = [answer_in_users([LIMIT], Settings(), each, 1.0) for each in ([kept, broken], [kept, broken, void])]
    assert answers[0] == answers[1]
    assert answers[0].rate in (10, 11, 12)


def test_a_crossing_is_where_the_share_is_what_is_allowed() -> None:
    blocks = [Block(users, 100_000, round(1000 * (users / 200) ** 20)) for users in (180, 190, 200, 210)]
    found = crossing(blocks, 0.01, 195)
    assert found.at == pytest.approx(200, rel=0.01)
    assert found.interval.low < 200 < found.interval.high
    assert found.slope == pytest.approx(20, rel=0.2)


def test_bursts_make_an_interval_wider() -> None:
    even = [Block(users, 1000, 10) for users in (195, 200, 205) for _ in range(8)]
    bursts = [Block(users, 1000, over) for users in (195, 200, 205) for over in (0, 0, 0, 40, 0, 0, 0, 40)]
    narrow, wide = crossing(even, 0.01, 200).interval, crossing(bursts, 0.01, 200).interval
    assert wide.width > 1.5 * narrow.width


def test_nothing_is_known_of_a_limit_that_nothing_broke() -> None:
    known = known_of(LIMIT, [Block(10, 100, 0), Block(20, 200, 0)])
    assert (known.kept, known.broken, known.users) == (20, None, math.inf)
