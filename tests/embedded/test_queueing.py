from __future__ import annotations

import statistics
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.queueing.model import QueueModel
from inference_benchmarker.embedded.queueing.rules import Rules
from inference_benchmarker.embedded.service_times import service_times
from inference_benchmarker.words.units import NS
from tests.queue_models import LATER, accepted, arrival_lists, queue, served, servers_of, services

if TYPE_CHECKING:
    from tests.queue_models import ServedJob

MS = 1_000_000


def run(model: QueueModel, arrivals: list[int]) -> list[ServedJob]:
    return served(model, accepted(model, arrivals))


def poisson(count: int, mean_gap_s: float, seed: int = 3) -> list[int]:
    gap = service_times(EndpointConfig(service="exponential", service_s=mean_gap_s, seed=seed))
    return list(accumulate(gap() for _ in range(count)))


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
    jobs = run(queue(servers, service), arrivals)
    assert [job.start_ns for job in jobs] == starts
    assert [job.finish_ns for job in jobs] == [start + service for start in starts]


def test_the_earliest_server_takes_the_next_request() -> None:
    jobs = run(queue(2, [50, 10, 10, 10]), [0, 0, 0, 0])
    assert [(job.start_ns, job.finish_ns) for job in jobs] == [(0, 50), (0, 10), (10, 20), (20, 30)]


def test_twice_the_capacity_makes_waits_grow_by_half_a_service_time() -> None:
    """D/D/1 at utilisation 2: the i-th waits i * (service - gap)."""
    jobs = run(queue(1, 20 * MS), [i * 10 * MS for i in range(500)])
    assert [job.start_ns - job.arrival_ns for job in jobs] == [i * 10 * MS for i in range(500)]


def test_mean_wait_of_poisson_arrivals_at_a_fixed_service() -> None:
    """M/D/1, Pollaczek-Khinchine: mean wait = rho * service / (2 * (1 - rho))."""
    jobs = run(queue(1, 10 * MS), poisson(30_000, 0.02))
    mean_wait = statistics.fmean(job.start_ns - job.arrival_ns for job in jobs)
    assert mean_wait == pytest.approx(0.5 * 10 * MS / (2 * 0.5), rel=0.03)


RHO, MEAN_S, REQUESTS = 0.6, 0.006, 30_000
SERVICES = {
    "exponential": EndpointConfig(service="exponential", service_s=MEAN_S),
    "fixed": EndpointConfig(service_s=MEAN_S),
    "bimodal": EndpointConfig(service="bimodal", service_s=MEAN_S),
}


def sojourns(discipline: str, service: str = "exponential") -> list[int]:
    """Arrival to finish of many requests at 60% of one server, in ns."""
    model = QueueModel(Rules(1, discipline), service_times(SERVICES[service]))
    return [job.finish_ns - job.arrival_ns for job in run(model, poisson(REQUESTS, MEAN_S / RHO))]


@pytest.mark.parametrize("service", SERVICES)
def test_processor_sharing_has_one_mean_sojourn_whatever_the_service_times(service: str) -> None:
    """M/G/1-PS: service / (1 - rho)."""
    assert statistics.fmean(sojourns("ps", service)) / NS == pytest.approx(MEAN_S / (1 - RHO), rel=0.04)


def test_last_come_first_served_has_the_mean_of_first_come_first_served_and_spreads_wider() -> None:
    """M/M/1: both have service / (1 - rho). E[wait^2] is 1 / (1 - rho) times as much."""
    first, last = sojourns("fifo"), sojourns("lifo")
    assert statistics.fmean(first) == pytest.approx(statistics.fmean(last), rel=0.01)
    assert statistics.fmean(first) / NS == pytest.approx(MEAN_S / (1 - RHO), rel=0.05)
    # E[sojourn^2] = E[wait^2] + 2 E[wait] E[service] + E[service^2], in units of the service time.
    wait, wait_squared = RHO / (1 - RHO), 2 * RHO / (1 - RHO) ** 2
    expected = [scale * wait_squared + 2 * wait + 2 for scale in (1, 1 / (1 - RHO))]
    squares = [statistics.fmean((each / NS / MEAN_S) ** 2 for each in times) for times in (first, last)]
    assert squares == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("servers", "services", "arrivals", "finishes"),
    [
        (1, [10, 10], [0, 0], [20, 20]),
        (1, [10, 10], [0, 5], [15, 20]),
        (1, [30, 10], [0, 10], [40, 30]),
        (1, [10, 10], [0, 10], [10, 20]),
        (2, [30, 30, 30], [0, 0, 0], [45, 45, 45]),
        (2, [30, 30], [0, 0], [30, 30]),
        (3, [10, 40], [0, 0], [10, 40]),
        (1, [0, 10], [0, 0], [0, 10]),
    ],
)
def test_requests_that_share_the_servers_get_even_parts_and_none_more_than_one_server(
    servers: int, services: list[int], arrivals: list[int], finishes: list[int]
) -> None:
    jobs = run(queue(servers, services, discipline="ps"), arrivals)
    assert [job.finish_ns for job in jobs] == finishes
    assert [job.start_ns for job in jobs] == arrivals


@pytest.mark.parametrize("discipline", ["fifo", "lifo"])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_queue_holds_exactly_its_limit(limit: int, discipline: str) -> None:
    model = queue(2, 10, limit, discipline=discipline)
    assert [model.offer(0) is not None for _ in range(limit + 4)] == [True] * (2 + limit) + [False] * 2
    assert (model.busy(0), model.queue_length(0), model.present(0)) == (2, limit, 2 + limit)
    # At 10 both servers finish; whoever waited moves up, so there are two places whatever the limit.
    assert sum(model.offer(10) is not None for _ in range(5)) == 2


def test_those_that_share_the_servers_are_limited_in_their_number() -> None:
    model = queue(2, 10, 3, discipline="ps")
    assert [model.offer(0) is not None for _ in range(7)] == [True] * 5 + [False] * 2
    assert (model.busy(0), model.queue_length(0), model.present(0)) == (2, 3, 5)


def test_a_rejected_request_takes_its_draw_with_it() -> None:
    jobs = run(queue(1, [10, 99, 7], limit=0), [0, 5, 10])
    assert [job.service_ns for job in jobs] == [10, 7]


def test_only_the_first_request_of_each_server_is_cold() -> None:
    jobs = run(queue(2, 10, cold_start_ns=100), [0, 500, 1000, 1000, 1000])
    assert [job.service_ns for job in jobs] == [110, 110, 10, 10, 10]
    assert [job.start_ns for job in jobs] == [0, 500, 1000, 1000, 1010]


def test_a_slow_start_lasts_for_its_time_or_its_number_of_requests() -> None:
    arrivals = [1000, 1050, 1099, 1100, 1200]
    timed = run(queue(5, 10, slow_start_ns=100, slow_start_factor=3), arrivals)
    assert [job.service_ns for job in timed] == [30, 30, 30, 10, 10]
    counted = run(queue(5, 10, slow_start_requests=2, slow_start_factor=2.5), arrivals)
    assert [job.service_ns for job in counted] == [25, 25, 10, 10, 10]


@pytest.mark.parametrize("discipline", ["fifo", "lifo", "ps"])
def test_in_a_pause_all_servers_stand_still(discipline: str) -> None:
    model = queue(2, 30, discipline=discipline, pause_every_ns=100, pause_ns=40)
    jobs = run(model, [1000, 1080, 1110, 1200, 1500])
    # Pauses: 1100 to 1140, 1200 to 1240, 1300 to 1340, ...
    assert [(job.start_ns, job.finish_ns) for job in jobs] == [
        (1000, 1030),
        (1080, 1150),
        (1140, 1170),
        (1240, 1270),
        (1540, 1570),
    ]


def test_pauses_go_on_while_nobody_is_there() -> None:
    model = queue(1, 10, pause_every_ns=10, pause_ns=5)
    assert [job.start_ns for job in run(model, [0, 100_001])] == [0, 100_005]


@pytest.mark.parametrize(
    ("arrivals", "spans"),
    [
        ([0, 1, 2, 3], [(3, 103)] * 4),
        ([0, 1], [(20, 120)] * 2),
        ([0, 1, 2, 3, 4], [(3, 103)] * 4 + [(103, 203)]),
        ([0, 1, 2, 3, 90], [(3, 103)] * 4 + [(110, 210)]),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], [(3, 103)] * 4 + [(103, 203)] * 4 + [(203, 303)]),
    ],
)
def test_a_batch_begins_when_it_is_full_or_has_waited(arrivals: list[int], spans: list[tuple[int, int]]) -> None:
    jobs = run(queue(1, 100, batch_size=4, batch_delay_ns=20), arrivals)
    assert [(job.start_ns, job.finish_ns) for job in jobs] == spans


def test_a_batch_takes_as_long_as_its_longest_request_and_a_full_server_has_no_room() -> None:
    model = queue(2, [10, 50, 20, 20, 99], limit=0, batch_size=2)
    assert [model.offer(0) is not None for _ in range(3)] == [True, True, False]
    assert (model.busy(0), model.queue_length(0)) == (2, 0)
    waiting = queue(2, [10, 50, 20, 20], batch_size=2, batch_delay_ns=5)
    assert [job.finish_ns for job in run(waiting, [0, 0, 0, 0])] == [50, 50, 20, 20]
    assert waiting.busy_ns(LATER) == 70


def test_an_overloaded_batching_server_completes_a_full_batch_each_service_time() -> None:
    jobs = run(queue(2, 10 * MS, batch_size=8, batch_delay_ns=MS), [i * MS // 10 for i in range(8_000)])
    assert max(job.finish_ns for job in jobs) / (10 * MS) == pytest.approx(8_000 / (2 * 8), rel=0.01)


def test_a_stall_moves_what_is_present_and_nothing_else() -> None:
    model = queue(1, 10)
    jobs = accepted(model, [0, 10, 12])
    model.stall(15, 100 / NS)
    jobs += accepted(model, [20])
    assert [(job.start_ns, job.finish_ns) for job in served(model, jobs)] == [
        (0, 10),
        (10, 120),
        (120, 130),
        (130, 140),
    ]


def test_a_stall_of_an_idle_server_makes_the_next_request_wait() -> None:
    model = queue(2, 10)
    model.stall(0, 100 / NS)
    jobs = accepted(model, [30, 40, 50])
    assert (model.busy(99), model.queue_length(99)) == (0, 3)
    assert (model.busy(100), model.queue_length(100)) == (2, 1)
    assert [job.start_ns for job in served(model, jobs)] == [100, 100, 110]


def test_overlapping_stalls_end_when_the_later_one_ends() -> None:
    model = queue(1, 10)
    jobs = accepted(model, [0])
    model.stall(5, 100 / NS)
    model.stall(50, 20 / NS)
    model.stall(55, 100 / NS)
    assert [job.finish_ns for job in served(model, jobs)] == [160]
    assert model.busy_ns(1000) == 160


@pytest.mark.parametrize(
    ("rules", "instants"),
    [
        ({}, [25, 50, 75, 100]),
        ({"pause_every_ns": 60, "pause_ns": 30}, [25, 50, 105, 160]),
        ({"discipline": "ps"}, [25, 50, 75, 125]),
    ],
)
def test_pieces_of_an_answer_are_ready_as_its_service_goes_on(rules: dict[str, Any], instants: list[int]) -> None:
    """The second request takes 25 ns: beside the first, with processor sharing."""
    model = queue(1, [100, 25], **rules)
    first = model.offer(0, pieces=4)
    assert model.next_ns() == 25
    ready = []
    for now in range(200):
        if now == 75 and rules.get("discipline") == "ps":
            assert model.offer(75)
        ready += [now for job in model.take_ready(now) if job is first]
    assert ready == instants
    assert model.next_ns() is None


orders = st.sampled_from([{"discipline": "fifo"}, {"discipline": "lifo"}, {"discipline": "ps"}])
batches = st.fixed_dictionaries({"batch_size": st.integers(2, 5), "batch_delay_ns": st.integers(0, 300)})
disturbances = st.fixed_dictionaries(
    {"pause_every_ns": st.integers(50, 900), "pause_ns": st.integers(0, 49), "cold_start_ns": st.integers(0, 99)}
)
memories: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.fixed_dictionaries(
    {
        "most_servers": st.integers(1, 8),
        "grow_queue": st.integers(0, 3),
        "grow_delay_ns": st.integers(0, 200),
        "grow_keep_ns": st.integers(0, 500),
        "slow_start_requests": st.integers(0, 9),
        "slow_start_gradual": st.booleans(),
        "slow_start_factor": st.just(2.5),
        "cool_ns": st.integers(0, 100),
        "burst_ns": st.integers(0, 500),
        "burst_baseline": st.just(0.25),
    }
)
rules_of = st.builds(lambda order, *more: order | more[0] | more[1], orders | batches, disturbances, memories)


@given(arrival_lists, services, servers_of)
def test_first_come_first_served_without_idling(arrivals: list[int], services: list[int], servers: int) -> None:
    jobs = run(queue(servers, services), arrivals)
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


@given(arrival_lists, services, servers_of)
def test_who_came_last_is_served_first_and_nobody_is_interrupted(
    arrivals: list[int], services: list[int], servers: int
) -> None:
    jobs = run(queue(servers, services, discipline="lifo"), arrivals)
    assert [job.finish_ns - job.start_ns for job in jobs] == services[: len(jobs)]
    for number, job in enumerate(jobs):
        assert len([j for j in jobs if j.start_ns <= job.start_ns < j.finish_ns]) <= servers
        left_behind = [j for j in jobs[number + 1 :] if j.arrival_ns < job.start_ns < j.start_ns]
        assert not left_behind


@given(arrival_lists, services, st.integers(1, 20_000))
def test_one_server_has_the_same_busy_periods_in_every_order(
    arrivals: list[int], services: list[int], later: int
) -> None:
    """Work conservation. Finishes are whole ns: where they share the server, each is late by a part of one."""
    models = {name: queue(1, services, discipline=name) for name in ("fifo", "lifo", "ps")}
    for number, at in enumerate([*arrivals, (arrivals or [0])[-1] + later]):
        busy = {name: model.busy_ns(at) for name, model in models.items()}
        assert busy["fifo"] == busy["lifo"]
        assert abs(busy["fifo"] - busy["ps"]) <= number * number
        for model in models.values():
            model.offer(at) if number < len(arrivals) else None


@given(arrival_lists, services, servers_of, st.integers(2, 5), st.integers(0, 300))
def test_batches_are_of_their_size_and_share_a_server(
    arrivals: list[int], services: list[int], servers: int, size: int, delay: int
) -> None:
    jobs = run(queue(servers, services, batch_size=size, batch_delay_ns=delay), arrivals)
    assert all(job.finish_ns - job.start_ns == job.service_ns for job in jobs)
    for job in jobs:
        serving = [j for j in jobs if j.start_ns <= job.start_ns < j.finish_ns]
        assert len(serving) <= servers * size
        if job.start_ns > job.arrival_ns + delay:
            assert len({id(j) for j in jobs if j.start_ns < job.start_ns <= j.finish_ns}) >= servers


def test_the_peak_is_the_most_requests_since_it_was_last_asked_for() -> None:
    model = queue(2, 10)
    accepted(model, [0, 1, 2, 3, 60])
    assert (model.take_peak(61), model.take_peak(62), model.take_peak(80)) == (4, 1, 1)
    assert model.take_peak(90) == 0
    accepted(model, [100, 120])
    assert model.take_peak(200) == 1


@settings(max_examples=60)
@given(arrival_lists, services, servers_of, st.integers(0, 4), rules_of)
def test_asking_a_model_changes_nothing_and_it_says_what_its_jobs_say(
    arrivals: list[int], services: list[int], servers: int, limit: int, rules: dict[str, Any]
) -> None:
    model, twin = (queue(servers, services, limit, **rules) for _ in range(2))
    jobs, ends = [], run(twin, arrivals)
    for at in sorted({*arrivals, *range(0, 5000, 500)}):
        assert model.present(at) == sum(job.arrival_ns < at < job.finish_ns for job in ends)
        for _ in range(arrivals.count(at)):
            jobs += [job] if (job := model.offer(at)) else []
    assert served(model, jobs) == ends
    assert model.present(LATER) == model.queue_length(LATER) == model.busy(LATER) == 0


@given(arrival_lists, services, servers_of, st.integers(0, 4), st.integers(0, 20_000))
def test_busy_time_and_queue_are_what_the_jobs_say(
    arrivals: list[int], services: list[int], servers: int, limit: int, later: int
) -> None:
    jobs = run(queue(servers, services, limit), arrivals)
    model = queue(servers, services, limit)
    accepted(model, arrivals)
    now = (arrivals[-1] if arrivals else 0) + later
    present = [job for job in jobs if job.finish_ns > now]
    waiting = [job for job in present if job.start_ns > now]
    assert (model.busy(now), model.queue_length(now)) == (len(present) - len(waiting), len(waiting))
    assert model.busy_ns(now) == sum(min(max(now - j.start_ns, 0), j.service_ns) for j in jobs)


@given(arrival_lists, services, servers_of, st.integers(0, 3000), st.integers(1, 5000))
def test_a_stall_after_the_last_arrival_shifts_exactly(
    arrivals: list[int], services: list[int], servers: int, wait: int, length: int
) -> None:
    model, twin = queue(servers, services), queue(servers, services)
    stalled = accepted(model, arrivals)
    now = (arrivals[-1] if arrivals else 0) + wait
    model.stall(now, length / NS)
    for moved, job in zip(served(model, stalled), run(twin, arrivals), strict=True):
        assert moved.finish_ns == job.finish_ns + (length if job.finish_ns > now else 0)
        assert moved.start_ns == job.start_ns + (length if job.start_ns > now else 0)


@pytest.mark.parametrize(
    ("more", "expected_cv"),
    [
        ({"service": "fixed", "cv": 9}, 0),
        ({"service": "exponential", "cv": 9}, 1),
        ({"service": "lognormal", "cv": 0.5}, 0.5),
        ({"service": "lognormal", "cv": 0}, 0),
        # 0.9 of 1 and 0.1 of 10: mean 1.9, second moment 10.9.
        ({"service": "bimodal"}, (10.9 - 1.9**2) ** 0.5 / 1.9),
        ({"service": "bimodal", "slow_share": 0}, 0),
    ],
)
def test_service_times_have_their_mean_and_spread(more: dict[str, Any], expected_cv: float) -> None:
    draw = service_times(EndpointConfig(service_s=0.02, seed=1, **more))
    times = [draw() for _ in range(100_000)]
    mean = statistics.fmean(times)
    assert mean == pytest.approx(20 * MS, rel=0.01)
    assert statistics.pstdev(times) / mean == pytest.approx(expected_cv, abs=0.02)


def test_bimodal_service_times_are_two() -> None:
    draw = service_times(EndpointConfig(service="bimodal", service_s=0.019, slow_share=0.1, slow_factor=10))
    times = [draw() for _ in range(10_000)]
    assert set(times) == {10 * MS, 100 * MS}
    assert 900 <= times.count(100 * MS) <= 1100


def test_service_times_repeat_for_a_seed_and_differ_for_another() -> None:
    configs = (EndpointConfig(service="lognormal", seed=seed) for seed in (7, 7, 8))
    first, again, other = map(service_times, configs)
    times = [first() for _ in range(5)]
    assert times == [again() for _ in range(5)]
    assert times != [other() for _ in range(5)]


def test_no_service_takes_no_time() -> None:
    assert service_times(EndpointConfig(service="none", service_s=0))() == 0
