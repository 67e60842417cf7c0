"""The scheduler hands every arrival to exactly one slot, never early, whatever the user's code leaves behind."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import gevent

from inference_benchmarker.engine.worker.population import PopulationScheduler
from inference_benchmarker.engine.worker.requests import Requests
from inference_benchmarker.engine.worker.scheduler import HANG_NS, ClosedLoopScheduler, OpenLoopScheduler, Scheduler
from inference_benchmarker.engine.worker.sessions import SingleTurns
from inference_benchmarker.plan.load import Bounds, ClosedLoop
from inference_benchmarker.plan.pacing import Arrival, TokenBucket
from inference_benchmarker.plan.population import PopulationStripe
from inference_benchmarker.plan.think import Think
from inference_benchmarker.records.batch_writer import BatchWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.engine.worker.in_flight import Slot

MS = 1_000_000
NEVER = 1 << 62


class Recorder(SingleTurns):
    """Notes when each arrival is taken up."""

    def __init__(self, work: Callable[[Arrival], Any]) -> None:
        requests = Requests(lambda *_: None, BatchWriter())
        super().__init__(requests, requests.execute, lambda _: None)
        self.taken: list[tuple[Arrival, int]] = []
        self._work = work

    def serve(self, slot: Slot) -> None:
        """Take arrivals until there are no more."""
        while (arrival := slot.take()) is not None:
            self.taken.append((arrival, monotonic_ns() - self.requests.t0))
            self.requests.in_flight += 1
            try:
                self._work(arrival)
            finally:
                self.requests.in_flight -= 1


def run(scheduler: Scheduler, sessions: Recorder) -> None:
    """Run a schedule to its end."""
    scheduler.start(monotonic_ns() + 5 * MS)
    with gevent.Timeout(20):
        scheduler.exhausted.wait()
        while sessions.requests.in_flight:
            gevent.sleep(0.001)
    scheduler.close()
    gevent.sleep(0)


def opened(arrivals: list[Arrival], sessions: Recorder, cap: int = 100, stop: int = NEVER) -> OpenLoopScheduler:
    """An open loop over these arrivals."""
    return OpenLoopScheduler(sessions, iter(arrivals), cap, stop)


def test_each_token_is_taken_up_once_and_never_early() -> None:
    sessions = Recorder(lambda _: gevent.sleep(0.002))
    arrivals = [Arrival(index, index * MS) for index in range(100)]
    run(opened(arrivals, sessions), sessions)
    assert [arrival for arrival, _ in sessions.taken] == arrivals
    assert all(now >= arrival.due for arrival, now in sessions.taken)


def test_a_burst_larger_than_a_quantum_is_sent_whole() -> None:
    sessions = Recorder(lambda _: gevent.sleep(0.001))
    run(opened([Arrival(index, 0) for index in range(200)], sessions, cap=300), sessions)
    assert Counter(arrival.index for arrival, _ in sessions.taken) == Counter(range(200))


def test_beyond_the_cap_arrivals_are_dropped_and_counted() -> None:
    sessions = Recorder(lambda _: gevent.sleep(0.2))
    run(opened([Arrival(index, 0) for index in range(10)], sessions, cap=4), sessions)
    assert [arrival.index for arrival, _ in sessions.taken] == [0, 1, 2, 3]
    assert sessions.requests.ledger.dropped == 6


def test_a_dropped_warmup_arrival_is_no_drop() -> None:
    sessions = Recorder(lambda _: gevent.sleep(0.2))
    run(opened([Arrival(-2, -2 * MS), Arrival(-1, -MS), Arrival(0, 0)], sessions, cap=1), sessions)
    assert sessions.requests.ledger.dropped == 1


def test_idle_slots_are_reused_last_in_first_out() -> None:
    sessions = Recorder(lambda _: None)
    run(opened([Arrival(index, index * MS) for index in range(50)], sessions), sessions)
    assert len(sessions.requests.slots) == 16


def test_a_stop_cuts_the_schedule_at_its_instant() -> None:
    sessions = Recorder(lambda _: None)
    scheduler = opened([Arrival(index, index * MS) for index in range(10_000)], sessions)
    scheduler.stop(30 * MS)
    run(scheduler, sessions)
    assert [arrival.index for arrival, _ in sessions.taken] == list(range(30))
    assert scheduler.drain_from() == 29 * MS


def test_a_timer_left_behind_by_a_request_does_not_end_its_slot() -> None:
    def leave_a_timer(arrival: Arrival) -> None:
        if arrival.index == 0:
            gevent.Timeout(0.005).start()

    sessions = Recorder(leave_a_timer)
    run(opened([Arrival(index, index * 10 * MS) for index in range(5)], sessions, cap=1), sessions)
    assert [arrival.index for arrival, _ in sessions.taken] == list(range(5))


def test_an_error_in_the_schedule_does_not_silence_it() -> None:
    class Stumbling(Recorder):
        kinds = 2
        stumbled = False

        def kind(self, index: int) -> int:
            if index == 3 and not self.stumbled:
                self.stumbled = True
                raise RuntimeError("once")
            return 0

    sessions = Stumbling(lambda _: None)
    scheduler = opened([Arrival(index, index * MS) for index in range(10)], sessions)
    run(scheduler, sessions)
    assert scheduler.dispatch_errors == 1
    assert [arrival.index for arrival, _ in sessions.taken] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def closed(sessions: Recorder, concurrency: int, bounds: Bounds, warmup_ns: int = 0) -> ClosedLoopScheduler:
    """A closed loop of one worker."""
    bucket = TokenBucket(ClosedLoop(concurrency), bounds, warmup_ns=warmup_ns)
    return ClosedLoopScheduler(sessions, bucket.stripe(0), warmup_ns, [0] * concurrency)


def test_a_closed_loop_keeps_its_concurrency_and_its_number() -> None:
    running: list[int] = []

    def work(_: Arrival) -> None:
        running.append(sessions.requests.in_flight)
        gevent.sleep(0.002)

    sessions = Recorder(work)
    run(closed(sessions, 5, Bounds(num_requests=42)), sessions)
    assert sorted(arrival.index for arrival, _ in sessions.taken) == list(range(42))
    assert max(running) == 5


def test_a_closed_loop_whose_requests_never_wait_still_lets_others_run() -> None:
    sessions = Recorder(lambda _: None)
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while True:
            gevent.sleep(0.001)
            ticks += 1

    ticker = gevent.spawn(tick)
    run(closed(sessions, 3, Bounds(num_requests=20_000)), sessions)
    ticker.kill()
    assert len(sessions.taken) == 20_000
    assert ticks


def test_a_closed_loop_without_a_time_bound_waits_long_for_its_slow_requests() -> None:
    sessions = Recorder(lambda _: gevent.sleep(30))
    scheduler = closed(sessions, 2, Bounds(num_requests=10))
    scheduler.start(monotonic_ns())
    gevent.sleep(0.02)
    assert not scheduler.exhausted.is_set()
    assert scheduler.drain_from() == HANG_NS
    scheduler.close()


def test_a_closed_loop_warms_up_below_zero_and_starts_the_window_at_index_zero() -> None:
    sessions = Recorder(lambda _: gevent.sleep(0.002))
    run(closed(sessions, 2, Bounds(num_requests=6), warmup_ns=20 * MS), sessions)
    below = [arrival for arrival, _ in sessions.taken if arrival.index < 0]
    window = [arrival for arrival, _ in sessions.taken if arrival.index >= 0]
    assert below
    assert all(arrival.due < 0 for arrival in below)
    assert sorted(arrival.index for arrival in window) == list(range(6))
    assert all(arrival.due >= 0 for arrival in window)


def test_what_waits_for_a_rate_ends_nothing_and_goes_on_when_it_changes() -> None:
    sessions = Recorder(lambda _: None)
    asked: list[tuple[int, Decimal, int]] = []

    def go_on(at_ns: int, rate: Decimal, index: int) -> Iterator[tuple[int, int]]:
        asked.append((at_ns, rate, index))
        return iter([(2, 30 * MS), (3, 40 * MS), (4, 60 * MS)])

    first = [Arrival(0, 0), Arrival(1, 5 * MS), Arrival(2, NEVER)]
    scheduler = OpenLoopScheduler(sessions, iter(first), 10, NEVER, go_on)
    scheduler.start(monotonic_ns())
    gevent.sleep(0.02)
    assert not scheduler.exhausted.is_set()
    scheduler.change(25 * MS, Decimal(100))
    scheduler.stop(50 * MS)
    with gevent.Timeout(20):
        scheduler.exhausted.wait()
    scheduler.close()
    gevent.sleep(0)
    assert asked == [(25 * MS, Decimal(100), 2)]
    assert [arrival.index for arrival, _ in sessions.taken] == [0, 1, 2, 3]
    assert all(now >= arrival.due for arrival, now in sessions.taken)


def test_a_steered_wave_with_a_bound_lasts_until_it() -> None:
    """Its next arrival is beyond the bound, but a change could bring one before it."""
    sessions = Recorder(lambda _: None)
    first = iter([Arrival(0, 0), Arrival(1, NEVER)])
    scheduler = OpenLoopScheduler(sessions, first, 10, 40 * MS, lambda *_: iter(()))
    run(scheduler, sessions)
    assert monotonic_ns() - sessions.requests.t0 >= 40 * MS
    assert [arrival.index for arrival, _ in sessions.taken] == [0]


def users(sessions: Recorder, number: int, think: str, bounds: Bounds, *, steered: bool = False) -> PopulationScheduler:
    """The users of one worker, who think."""
    bucket = TokenBucket(ClosedLoop(number, Think.parse(think), steered=steered), bounds)
    return PopulationScheduler(sessions, PopulationStripe(bucket, 0), 100, steered=steered)


def test_users_think_between_an_answer_and_their_next_request() -> None:
    running: list[int] = []

    def work(_: Arrival) -> None:
        running.append(sessions.requests.in_flight)
        gevent.sleep(0.002)

    sessions = Recorder(work)
    run(users(sessions, 5, "20ms", Bounds(num_requests=42)), sessions)
    assert [arrival.index for arrival, _ in sessions.taken] == list(range(42))
    assert max(running) <= 5
    assert len(sessions.requests.slots) <= 5
    dues = [arrival.due for arrival, _ in sessions.taken]
    assert dues == sorted(dues)
    assert dues[-1] >= 7 * 22 * MS, "8 rounds of 5 and 2 more"
    assert all(now >= arrival.due for arrival, now in sessions.taken)


def test_users_who_think_stop_when_their_time_is_over() -> None:
    sessions = Recorder(lambda _: None)
    scheduler = users(sessions, 3, "5ms", Bounds(Decimal("0.05")))
    run(scheduler, sessions)
    assert 3 <= len(sessions.taken) <= 33
    assert all(arrival.due < 50 * MS for arrival, _ in sessions.taken)
    assert scheduler.drain_from() == 50 * MS


def test_the_number_of_users_is_changed_while_they_run() -> None:
    sessions = Recorder(lambda _: gevent.sleep(0.001))
    scheduler = users(sessions, 2, "10ms", Bounds(), steered=True)
    scheduler.start(monotonic_ns())
    scheduler.change(50 * MS, Decimal(0))
    scheduler.change(90 * MS, Decimal(4))
    gevent.sleep(0.08)
    assert not scheduler.exhausted.is_set()
    assert scheduler.drain_from() is None
    scheduler.stop(120 * MS)
    with gevent.Timeout(20):
        scheduler.exhausted.wait()
    scheduler.close()
    dues = [arrival.due for arrival, _ in sessions.taken]
    assert not [due for due in dues if 50 * MS <= due < 90 * MS]
    assert len([due for due in dues if due < 50 * MS]) >= 2
    assert len([due for due in dues if due >= 90 * MS]) >= 4


def test_users_who_neither_wait_nor_think_let_others_run() -> None:
    sessions = Recorder(lambda _: None)
    run(users(sessions, 3, "0s", Bounds(num_requests=5_000)), sessions)
    assert len(sessions.taken) == 5_000
