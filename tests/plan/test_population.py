"""Users who think, simulated on a clock of their own: never more in flight than there are, nobody lost, on time."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from heapq import heappop, heappush
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.plan.load import Bounds, ClosedLoop, Population
from inference_benchmarker.plan.pacing import Arrival, TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.population import PopulationStripe
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.plan.steering import RateChange, as_offered
from inference_benchmarker.plan.think import Think
from inference_benchmarker.words.units import NS

MS = NS // 1000


@dataclass
class Server:
    """Answers each request after a time of its own; as many at a time as there are units, first come first served."""

    random: Random
    mean_ns: int
    units: int = 10**9
    free: list[int] = field(default_factory=list)

    def done(self, now: int) -> int:
        begin = now if len(self.free) < self.units else max(now, heappop(self.free))
        end = begin + int(self.random.expovariate(1 / self.mean_ns))
        if self.units < 10**9:
            heappush(self.free, end)
        return end


def stripe_of(users: int, think: str | None, bounds: Bounds, *, worker: int = 0, workers: int = 1) -> PopulationStripe:
    load = ClosedLoop(users, None if think is None else Think.parse(think), steered=bounds == Bounds())
    return PopulationStripe(TokenBucket(load, bounds, workers=workers, seed=5), worker)


def simulate(stripe: PopulationStripe, server: Server, until: int) -> list[tuple[Arrival, int]]:
    """Each arrival, and when its answer came; all instants are those that the stripe itself asks for."""
    found: list[tuple[Arrival, int]] = []
    answers: list[tuple[int, int]] = []
    now = -1
    while now < until and not (stripe.is_over(now) and not answers):
        while (arrival := stripe.take(now)) is not None:
            end = server.done(now)
            found.append((arrival, end))
            heappush(answers, (end, arrival.index))
        times = [time for time in (stripe.next_ns(), answers[0][0] if answers else None) if time is not None]
        now = min((time for time in times if time > now), default=until)
        while answers and answers[0][0] <= now:
            stripe.answered(heappop(answers)[1], now)
    return found


def most_at_a_time(found: list[tuple[Arrival, int]]) -> int:
    """The most requests in flight."""
    steps = sorted([(arrival.due, 1) for arrival, _ in found] + [(end, -1) for _, end in found])
    return int(np.cumsum([step for _, step in steps]).max(initial=0))


thinking = st.sampled_from([None, "50ms", "exponential:50ms", "uniform:0..100ms", "lognormal:50ms:2"])


@settings(max_examples=30)
@given(users=st.integers(1, 20), think=thinking, mean=st.integers(20, 200), seed=st.integers(0, 99))
def test_each_user_has_one_request_at_a_time_and_sends_when_the_thought_is_over(
    users: int, think: str | None, mean: int, seed: int
) -> None:
    stripe = stripe_of(users, think, Bounds(Decimal(1)))
    found = simulate(stripe, Server(Random(seed), mean * MS), 2 * NS)
    assert [arrival.index for arrival, _ in found] == list(range(len(found)))
    dues = [arrival.due for arrival, _ in found]
    assert dues == sorted(dues)
    assert all(0 <= due < NS for due in dues)
    assert most_at_a_time(found) <= users
    thought = Think.parse(think or "0s")
    begun = [thought.rest_ns(place / users, 5, -1 - place) for place in range(users)]
    returned = [end + thought.ns(5, arrival.index) for arrival, end in found]
    assert dues == sorted(due for due in begun + returned if due < NS)


@given(users=st.integers(1, 30), workers=st.integers(1, 7), number=st.integers(1, 100))
def test_a_number_of_requests_is_sent_exactly(users: int, workers: int, number: int) -> None:
    indices: list[int] = []
    for worker in range(workers):
        stripe = stripe_of(max(users, workers), "10ms", Bounds(num_requests=number), worker=worker, workers=workers)
        indices += [arrival.index for arrival, _ in simulate(stripe, Server(Random(1), MS), 100 * NS)]
        assert stripe.spent
    assert sorted(indices) == list(range(number))


@given(users=st.integers(7, 60), workers=st.integers(1, 7))
def test_users_begin_spread_evenly_over_a_think_time_whichever_worker_has_them(users: int, workers: int) -> None:
    dues = []
    for worker in range(workers):
        stripe = stripe_of(users, "1s", Bounds(Decimal(1)), worker=worker, workers=workers)
        dues += [arrival.due for arrival, _ in simulate(stripe, Server(Random(1), 10 * NS), NS)]
    assert len(dues) == users
    assert min(dues) == 0
    gaps = np.diff([*sorted(dues), NS])
    assert gaps.max() <= 2.01 * NS * workers / users
    assert np.mean(dues) == pytest.approx(NS / 2, abs=NS * workers / users)


counts = st.lists(st.integers(0, 30), min_size=1, max_size=4)


@settings(max_examples=20)
@given(numbers=counts, think=thinking, workers=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_number_of_users_follows_each_change(
    numbers: list[int], think: str | None, workers: int, seed: int
) -> None:
    """Half a second after each change no more than were asked for are there, thinking or in flight."""
    worker = seed % workers
    stripe = stripe_of(20, think, Bounds(), worker=worker, workers=workers)
    server = Server(Random(seed), 50 * MS)
    for place, users in enumerate(numbers, 1):
        stripe.change(place * NS, users)
    stripe.stop((len(numbers) + 1) * NS)
    found = simulate(stripe, server, (len(numbers) + 2) * NS)
    for place, users in enumerate([20, *numbers]):
        after = [each for each in found if place * NS + NS // 2 <= each[0].due < (place + 1) * NS]
        assert most_at_a_time(after) <= len(range(worker, users, workers))
    dues = [arrival.due for arrival, _ in found]
    assert dues == sorted(dues)
    assert max(dues, default=0) < (len(numbers) + 1) * NS


@pytest.mark.parametrize("think", ["1s", "exponential:1s", "uniform:0.2s..1.8s", "lognormal:1s:0.7", "lognormal:1s:2"])
def test_users_begin_as_they_go_on(think: str) -> None:
    """Where answers take no time, as many are sent in each quarter of a second, from the first on."""
    found = simulate(stripe_of(800, think, Bounds(Decimal(3))), Server(Random(1), 1), 3 * NS)
    sent = np.bincount([arrival.due // (NS // 4) for arrival, _ in found], minlength=12)
    assert sent == pytest.approx(200, abs=65)
    assert sent.mean() == pytest.approx(200, rel=0.06)


def test_those_who_leave_let_the_others_go_on_as_evenly_as_before() -> None:
    stripe = stripe_of(100, "1s", Bounds())
    stripe.change(3 * NS, 50)
    stripe.stop(6 * NS)
    found = simulate(stripe, Server(Random(1), MS), 6 * NS)
    sent = np.bincount([arrival.due // (NS // 4) for arrival, _ in found], minlength=24)
    assert sent[4:12] == pytest.approx(25, abs=3)
    assert sent[13:24] == pytest.approx(12.5, abs=3)


def test_rates_are_those_of_the_machine_repairman_model() -> None:
    """N users, exponential service of c servers and think times: the throughput has a closed form (M/M/c//N)."""
    users, units, service, think = 30, 4, 0.02, 0.1
    stripe = stripe_of(users, f"exponential:{think}s", Bounds(Decimal(60)))
    found = simulate(stripe, Server(Random(3), int(service * NS), units), 60 * NS)
    weights = [1.0]
    for number in range(users):
        weights.append(weights[-1] * (users - number) / think * service / min(number + 1, units))
    busy = sum(min(number, units) * weight for number, weight in enumerate(weights)) / sum(weights)
    assert len(found) / 60 == pytest.approx(busy / service, rel=0.02)


def test_what_was_offered_is_its_populations() -> None:
    load = ClosedLoop(8, Think.parse("1s"), steered=True)
    plan = WavePlan(load, Bounds(), seed=1)
    assert not problems_of_values(plan)
    over = as_offered(plan, [RateChange(2 * NS, Decimal(16)), RateChange(3 * NS, Decimal(0))], 4 * NS)
    assert isinstance(over.load, ClosedLoop)
    assert over.load.populations == (Population(8, Decimal(2)), Population(16, Decimal(1)), Population(0, Decimal(1)))
    assert (over.load.concurrency, over.load.is_steered, over.load.length_s) == (8, False, Decimal(4))
    assert WavePlan.from_json(over.to_json()) == over
