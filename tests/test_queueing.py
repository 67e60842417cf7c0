from __future__ import annotations

import math
import statistics
from itertools import pairwise, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.demo.queueing import NS, Job, QueueModel, service_times

MS = 1_000_000


def queue(servers: int, service_ns: int | list[int], limit: int | None = None, cold_ns: int = 0) -> QueueModel:
    times = repeat(service_ns) if isinstance(service_ns, int) else iter(service_ns)
    return QueueModel(servers, lambda: next(times), limit, cold_ns)


def accepted(model: QueueModel, arrivals: list[int]) -> list[Job]:
    return [job for at in arrivals if (job := model.offer(at))]


@pytest.mark.parametrize(
    ("servers", "service", "arrivals", "starts"),
    [
        (1, 10, [0, 0, 0], [0, 10, 20]),
        (2, 10, [0, 0, 0, 0], [0, 0, 10, 10]),
        (1, 10, [0, 10, 20], [0, 10, 20]),
        (1, 10, [0, 9, 11, 100], [0, 10, 20, 100]),
        (3, 30, [0, 10, 20, 25, 31], [0, 10, 20, 30, 40]),
        (1, 0, [5, 5, 5], [5, 5, 5]),
    ],
)
def test_fixed_service_starts_when_a_server_is_free(
    servers: int, service: int, arrivals: list[int], starts: list[int]
) -> None:
    jobs = accepted(queue(servers, service), arrivals)
    assert [job.start_ns for job in jobs] == starts
    assert [job.finish_ns for job in jobs] == [start + service for start in starts]


def test_the_earliest_server_takes_the_next_request() -> None:
    jobs = accepted(queue(2, [50, 10, 10, 10]), [0, 0, 0, 0])
    assert [(job.start_ns, job.finish_ns) for job in jobs] == [(0, 50), (0, 10), (10, 20), (20, 30)]


def test_twice_the_capacity_makes_waits_grow_by_half_a_service_time() -> None:
    """D/D/1 at utilisation 2: the i-th waits i * (service - gap)."""
    jobs = accepted(queue(1, 20 * MS), [i * 10 * MS for i in range(500)])
    assert [job.start_ns - job.arrival_ns for job in jobs] == [i * 10 * MS for i in range(500)]


def test_mean_wait_of_poisson_arrivals_at_a_fixed_service() -> None:
    """M/D/1, Pollaczek-Khinchine: mean wait = rho * service / (2 * (1 - rho))."""
    gaps = service_times("exponential", 0.02, 1, seed=3)
    at, arrivals = 0, []
    for _ in range(200_000):
        at += gaps()
        arrivals.append(at)
    jobs = accepted(queue(1, 10 * MS), arrivals)
    mean_wait = statistics.fmean(job.start_ns - job.arrival_ns for job in jobs)
    assert mean_wait == pytest.approx(0.5 * 10 * MS / (2 * 0.5), rel=0.03)


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_queue_holds_exactly_its_limit(limit: int) -> None:
    model = queue(2, 10, limit)
    assert [model.offer(0) is not None for _ in range(limit + 4)] == [True] * (2 + limit) + [False] * 2
    assert (model.busy(0), model.queue_length(0)) == (2, limit)
    # At 10 both servers finish; whoever waited moves up, so there are two places whatever the limit.
    assert sum(model.offer(10) is not None for _ in range(5)) == 2


def test_a_rejected_request_takes_its_draw_with_it() -> None:
    jobs = accepted(queue(1, [10, 99, 7], limit=0), [0, 5, 10])
    assert [job.service_ns for job in jobs] == [10, 7]


def test_only_the_first_request_of_each_server_is_cold() -> None:
    jobs = accepted(queue(2, 10, cold_ns=100), [0, 500, 1000, 1000, 1000])
    assert [job.service_ns for job in jobs] == [110, 110, 10, 10, 10]
    assert [job.start_ns for job in jobs] == [0, 500, 1000, 1000, 1010]


def test_a_stall_moves_what_is_present_and_nothing_else() -> None:
    model = queue(1, 10)
    done, serving, waiting = accepted(model, [0, 10, 12])
    model.stall(15, 100 / NS)
    later = model.offer(20)
    assert later
    assert [(job.start_ns, job.finish_ns) for job in (done, serving, waiting, later)] == [
        (0, 10),
        (10, 120),
        (120, 130),
        (130, 140),
    ]


def test_a_stall_of_an_idle_server_makes_the_next_request_wait() -> None:
    model = queue(2, 10)
    model.stall(0, 100 / NS)
    jobs = accepted(model, [30, 40, 50])
    assert [job.start_ns for job in jobs] == [100, 100, 110]
    assert (model.busy(99), model.queue_length(99)) == (0, 3)
    assert (model.busy(100), model.queue_length(100)) == (2, 1)


def test_overlapping_stalls_end_when_the_later_one_ends() -> None:
    model = queue(1, 10)
    (job,) = accepted(model, [0])
    model.stall(5, 100 / NS)
    model.stall(50, 20 / NS)
    assert job.finish_ns == 110
    model.stall(55, 100 / NS)
    assert job.finish_ns == 160
    assert model.busy_ns(1000) == 160


arrival_lists = st.lists(st.integers(0, 200), max_size=60).map(
    lambda gaps: [sum(gaps[: i + 1]) for i in range(len(gaps))]
)
services = st.lists(st.integers(0, 300), min_size=60, max_size=60)
servers_of = st.integers(1, 5)


@given(arrival_lists, services, servers_of)
def test_first_come_first_served_without_idling(arrivals: list[int], services: list[int], servers: int) -> None:
    jobs = accepted(queue(servers, services), arrivals)
    assert all(a.start_ns <= b.start_ns for a, b in pairwise(jobs))
    assert [job.finish_ns - job.start_ns for job in jobs] == services[: len(jobs)]
    for job in jobs:
        serving = [j for j in jobs if j.start_ns <= job.start_ns < j.finish_ns]
        assert len(serving) <= servers
        if job.start_ns > job.arrival_ns:
            # It waited, so all servers worked until the instant it started, when one of them became free.
            before = [j for j in jobs if j is not job and j.start_ns <= job.start_ns - 1 < j.finish_ns]
            assert len(before) == servers
            assert any(j.finish_ns == job.start_ns for j in before)


def test_the_peak_is_the_most_requests_since_it_was_last_asked_for() -> None:
    model = queue(2, 10)
    accepted(model, [0, 1, 2, 3, 60])
    assert (model.take_peak(61), model.take_peak(62), model.take_peak(80)) == (4, 1, 1)
    assert model.take_peak(90) == 0
    accepted(model, [100, 120])
    assert model.take_peak(200) == 1


@given(arrival_lists, services, servers_of, st.integers(0, 4), st.integers(0, 20_000))
def test_state_at_any_instant_is_what_the_jobs_say(
    arrivals: list[int], services: list[int], servers: int, limit: int, later: int
) -> None:
    model = queue(servers, services, limit)
    jobs: list[Job] = []
    peak = 0
    for at in arrivals:
        present = [j for j in jobs if j.finish_ns > at]
        waiting = [j for j in present if j.start_ns > at]
        assert (model.busy(at), model.queue_length(at)) == (len(present) - len(waiting), len(waiting))
        job = model.offer(at)
        full = len(present) - len(waiting) == servers and len(waiting) == limit
        assert (job is None) == full
        jobs += [job] if job else []
        peak = max(peak, len(present) + 1) if job else peak
    assert model.take_peak(arrivals[-1] if arrivals else 0) == peak
    now = (arrivals[-1] if arrivals else 0) + later
    assert model.busy_ns(now) == sum(min(max(now - j.start_ns, 0), j.service_ns) for j in jobs)


@given(arrival_lists, services, servers_of, st.integers(0, 3000), st.integers(1, 5000))
def test_a_stall_after_the_last_arrival_shifts_exactly(
    arrivals: list[int], services: list[int], servers: int, wait: int, length: int
) -> None:
    model, twin = queue(servers, services), queue(servers, services)
    stalled, undisturbed = accepted(model, arrivals), accepted(twin, arrivals)
    now = (arrivals[-1] if arrivals else 0) + wait
    model.stall(now, length / NS)
    for moved, job in zip(stalled, undisturbed, strict=True):
        assert moved.finish_ns == job.finish_ns + (length if job.finish_ns > now else 0)
        assert moved.start_ns == job.start_ns + (length if job.start_ns > now else 0)
    after = [m.offer(now + length + 100_000) for m in (model, twin)]
    assert after[0]
    assert after[1]
    assert after[0].start_ns == after[1].start_ns


@pytest.mark.parametrize(
    ("kind", "cv", "expected_cv"),
    [("fixed", 9, 0), ("exponential", 9, 1), ("lognormal", 0.5, 0.5), ("lognormal", 0, 0)],
)
def test_service_times_have_their_mean_and_spread(kind: str, cv: float, expected_cv: float) -> None:
    draw = service_times(kind, 0.02, cv, seed=1)
    times = [draw() for _ in range(100_000)]
    mean = statistics.fmean(times)
    assert mean == pytest.approx(20 * MS, rel=0.01)
    assert statistics.pstdev(times) / mean == pytest.approx(expected_cv, abs=0.02)


def test_service_times_repeat_for_a_seed_and_differ_for_another() -> None:
    first, again, other = (service_times("lognormal", 0.02, 1, seed) for seed in (7, 7, 8))
    times = [first() for _ in range(5)]
    assert times == [again() for _ in range(5)]
    assert times != [other() for _ in range(5)]


def test_no_service_takes_no_time_and_an_unknown_one_is_refused() -> None:
    assert service_times("none", math.nan, 1, 0)() == 0
    with pytest.raises(ValueError, match="uniform"):
        service_times("uniform", 1, 1, 0)
