"""Whether an endpoint keeps up where no limit shows that it does not: by a server of a few slots, in virtual time."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.slo import Slo
from server_capacity.experiments.measurements.track import Track
from server_capacity.search.keeping_up import FAR_SLOWER, SLOWER, rate_kept_up, slower_of
from server_capacity.search.limit_bracket import KEEPS_UP
from server_capacity.search.limits import limits_of
from server_capacity.search.search import Moment
from server_capacity.search.session_answer import answer_in_sessions
from server_capacity.search.sessions import SessionSearch
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Count, Slice, Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from server_capacity.search.answer import Answer

TPOT = limits_of([Slo.parse("tpot.p95<50ms")], 0.95)
ALONE_S = 0.8


@dataclass
class Slots:
    """Requests wait for one of some slots, whose tokens come as fast at any load; infinitely many: nobody waits."""

    number: float
    length_s: Callable[[random.Random], float]
    seed: int = 0

    def __post_init__(self) -> None:
        self.draws, self.free, self.open = random.Random(self.seed), [0.0] * int(min(self.number, 4)), 0
        self.answers: list[tuple[float, float]] = []
        self.waiting: list[tuple[float, float]] = []

    def send(self, at_s: float) -> None:
        length_s = self.length_s(self.draws)
        begin = at_s if math.isinf(self.number) else max(at_s, heappop(self.free))
        if not math.isinf(self.number):
            heappush(self.free, begin + length_s)
        heappush(self.waiting, (begin + length_s, at_s))

    def ended(self, by_s: float) -> list[float]:
        """The times of the answers that came by then."""
        found = []
        while self.waiting and self.waiting[0][0] < by_s:
            answer = heappop(self.waiting)
            self.answers.append(answer)
            found.append(answer[0] - answer[1])
        return found


def searched(server: Slots, settings: Settings, alone_s: float = ALONE_S, slower: float = SLOWER) -> Answer:
    """The answer of a search by a limit that every request meets."""
    search, track, draws = (
        SessionSearch(TPOT, settings, alone_s, single=True, slower=slower),
        Track(),
        random.Random(server.seed + 1),
    )
    rate, number, now, sent = search.first_rate, 0, 0, list[float]()
    track.change(0, 0, rate, search.purpose)
    due = draws.expovariate(rate)
    while True:
        now += 1
        before = len(sent)
        while due < now:
            server.send(due)
            sent.append(due)
            due += draws.expovariate(rate)
        track.add(number, met(now - 1, len(sent) - before, server.ended(now)))
        order = search.order(Moment(now, track.stretches(now, len(server.waiting)), len(server.waiting)))
        if order == "end":
            break
        if order is not None:
            number, rate = number + 1, order
            track.change(number, now, rate, search.purpose, len(server.waiting))
            due = now + draws.expovariate(rate) if rate else math.inf
    took = {at: end - at for end, at in (*server.answers, *server.waiting)}
    final = [replace(each, slices=by_due(each, took)) for each in track.stretches(now, len(server.waiting))]
    return answer_in_sessions(TPOT, settings, final, alone_s, single=True, slower=slower)


def met(second: int, sent: int, times: list[float]) -> Slice:
    return Slice(second, second + 1, sent, len(times), (Count(len(times), 0),) * 2, sum(times))


def by_due(stretch: Stretch, took: dict[float, float]) -> tuple[Slice, ...]:
    due = [(at, time) for at, time in took.items() if stretch.start_s <= at < stretch.end_s]
    seconds = range(int(stretch.start_s), int(stretch.end_s))
    return tuple(
        met(second, len(times), times)
        for second, times in ((each, [time for at, time in due if each <= at < each + 1]) for each in seconds)
    )


@pytest.mark.parametrize(
    ("settings", "slower"),
    [
        (Settings(time_s=120), SLOWER),
        (Settings(time_s=120, max_rps=7.5), SLOWER),
        (Settings(time_s=120, start_rps=15), FAR_SLOWER),
    ],
)
def test_what_a_few_slots_serve_is_found_although_no_token_is_late(settings: Settings, slower: float) -> None:
    """Before: 7.5/s met every limit, at least 120/s from 15/s on, or none was violated; 5/s are served."""
    for seed in range(5):
        found = searched(Slots(4, lambda _: 0.8, seed), settings, slower=slower)
        assert (found.outcome, found.limit) == ("found", KEEPS_UP)
        assert found.interval is not None
        assert 3 <= found.interval.low <= 5.15
        assert 4.85 <= found.interval.high <= 7


@pytest.mark.parametrize("lengths", [lambda draws: draws.expovariate(1.25), lambda _: 0.8])
def test_an_endpoint_without_a_queue_has_no_such_limit(lengths: Callable[[random.Random], float]) -> None:
    """Ever more are open at a higher rate, and none of them waits."""
    for seed in range(5):
        found = searched(Slots(math.inf, lengths, seed), Settings(time_s=120, max_rps=20), 0.8)
        assert found.outcome in ("at_least", "cannot_tell"), found
        assert found.limit is None


def stretch(number: int, rate: float, mean_s: float, in_flight: int, purpose: str = "grow", **more: object) -> Stretch:
    """20 s of a rate, whose requests were answered after so long."""
    begin = 20 * number
    sent = round(rate)
    slices = [
        Slice(each, each + 1, sent, sent, (Count(sent, 0),) * 2, sent * mean_s) for each in range(begin, begin + 20)
    ]
    found = Stretch(number, rate, begin, begin + 20, tuple(slices), purpose, in_flight=in_flight)
    return replace(found, **more)  # type: ignore[arg-type]


def drained(number: int, inherited: int) -> Stretch:
    return Stretch(number, 0.0, 20 * number, 20 * number + 10, (), "drain", inherited=inherited)


def kept_up(stretches: Iterable[Stretch], slower: float = SLOWER) -> tuple[float, float | None]:
    found = rate_kept_up(TPOT, list(stretches), ALONE_S, slower)
    return round(found.users, 3), found.broken


def test_the_rate_at_which_a_backlog_came_and_was_served() -> None:
    calm, full = stretch(0, 4, 0.8, 3), stretch(1, 8, 6.0, 63, inherited=3)
    assert kept_up([calm, full]) == (math.inf, None), "nobody says that it is a backlog"
    assert kept_up([calm, full, drained(2, 63)]) == (round(163 / 30, 3), 8), "100 in 20 s, and 63 in 10 s"
    assert kept_up([calm, full, replace(drained(2, 63), purpose="pause")]) == (math.inf, None)


def test_what_takes_as_long_as_at_lower_rates_is_no_backlog() -> None:
    calm, full = stretch(0, 4, 6.0, 24), stretch(1, 8, 6.0, 63, inherited=24)
    assert kept_up([calm, full, drained(2, 63), stretch(3, 4, 6.0, 24)]) == (math.inf, None)


def test_a_calm_stretch_as_long_at_the_same_rate_refutes_it() -> None:
    calm, full = stretch(0, 4, 0.8, 3), stretch(1, 8, 6.0, 63, inherited=3)
    assert kept_up([calm, full, drained(2, 63), stretch(3, 8, 0.8, 6)]) == (math.inf, None)


def test_a_wave_whose_requests_show_it_falls_behind_only_if_it_lasted() -> None:
    calm, slow = stretch(0, 4, 0.8, 3), stretch(1, 8, 2.0, 20, "confirm", behind=True)
    assert kept_up([calm, slow]) == (7.32, 8), "140 in 20 s, and of those open 6.4 as at any time"
    assert kept_up([stretch(0, 4, 6.0, 3), slow]) == (math.inf, None), "its requests may take that long"


def test_the_highest_rate_allowed_leaves_no_more_open_than_it_explains() -> None:
    calm, most = stretch(0, 4, 0.8, 3), stretch(1, 8, 4.0, 40, "at most")
    assert kept_up([calm, most]) == (6.32, 8), "120 in 20 s, and of those open 6.4 as at any time"
    assert kept_up([calm, stretch(1, 8, 4.0, 30, "at most")]) == (math.inf, None)


def test_streams_may_be_as_much_slower_as_their_tokens() -> None:
    assert slower_of(TPOT, 0.03) == pytest.approx(3 * 0.05 / 0.03)
    assert slower_of(TPOT, 0.001) == FAR_SLOWER
    assert slower_of(TPOT, 0.049) == SLOWER
    assert slower_of(TPOT, 0.0) == SLOWER, "nothing is known of them"
    assert slower_of(limits_of([Slo.parse("ttft.p95<1s")], 0.95), 0.01) == 10, "that limit shows a queue"
