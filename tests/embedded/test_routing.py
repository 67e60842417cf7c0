"""Instances with a queue each: closed forms where there are some, and what must hold whatever comes."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.queueing.routed import RoutedQueues, queues
from inference_benchmarker.embedded.queueing.rules import Rules
from inference_benchmarker.errors import BenchmarkError
from tests.performance.capacity.truths import response_longer
from tests.queue_capacity import Load, Simulation, response_times
from tests.queue_models import LATER, arrival_lists, reported

if TYPE_CHECKING:
    from inference_benchmarker.embedded.queueing.job import Job

MS = 1_000_000


def routed(routing: str, instances: int = 2, servers: int = 2, service_ns: int = 10 * MS) -> RoutedQueues:
    found = queues(Rules(servers), repeat(service_ns).__next__, routing, instances, 0)
    assert isinstance(found, RoutedQueues)
    return found


@pytest.mark.parametrize(("servers", "instances", "rate"), [(4, 2, 130), (3, 3, 90), (4, 1, 160)])
def test_random_routing_splits_into_as_many_queues(servers: int, instances: int, rate: float) -> None:
    """Poisson arrivals split at random are Poisson again: each instance is an M/M/c of its part of the rate."""
    config = EndpointConfig(servers=servers, instances=instances, routing="random", service="exponential")
    times = response_times(Simulation(config).send(Load(rate, 20_000 / rate)))
    each = servers // instances
    load = rate / instances * config.service_s / each
    for limit_s in (0.02, 0.05, 0.1):
        truth = response_longer(each, load, limit_s / config.service_s)
        assert (times > limit_s).mean() == pytest.approx(truth, rel=0.12, abs=0.005)


def test_the_fewest_outstanding_are_between_one_queue_and_random_ones() -> None:
    """Each instance has one server, and 80% of them are busy: the better the router, the shorter the mean wait."""
    waits = {}
    for routing in ("shared", "least_outstanding", "random"):
        config = EndpointConfig(servers=4, instances=4, routing=routing, service="exponential")
        waits[routing] = float(response_times(Simulation(config).send(Load(160, 50))).mean()) - config.service_s
    assert waits["shared"] < 0.9 * waits["least_outstanding"] < 0.5 * waits["random"]


def test_a_request_goes_where_the_fewest_are() -> None:
    queue = routed("least_outstanding", instances=3, servers=3)
    jobs = [queue.offer(0) for _ in range(6)]
    queue.take_ready(LATER)
    assert sorted(reported(job).start_ns for job in jobs if job) == [0] * 3 + [10 * MS] * 3


def test_an_instance_that_comes_takes_only_what_comes_after_it() -> None:
    """Unlike with one queue, where it would take up what waits."""
    queue = routed("least_outstanding", instances=1, servers=1)
    before = [queue.offer(0) for _ in range(4)]
    queue.resize(5 * MS, 2)
    after = [queue.offer(5 * MS) for _ in range(2)]
    queue.take_ready(LATER)
    assert [job.start_ns for job in before if job] == [0, 10 * MS, 20 * MS, 30 * MS]
    assert [job.start_ns for job in after if job] == [5 * MS, 15 * MS]


def test_work_is_counted_from_when_an_instance_came_until_it_had_ended() -> None:
    """Two instances of one server; the second ends at 10 ms with 15 ms of work left, which it does before it goes."""
    queue = routed("least_outstanding", instances=1, servers=1, service_ns=20 * MS)
    queue.offer(0)
    queue.resize(5 * MS, 2)
    queue.offer(5 * MS)
    queue.resize(10 * MS, 1)
    assert queue.servers == 1
    queue.take_ready(25 * MS)
    assert (queue.busy_ns(40 * MS), queue.server_ns(40 * MS)) == (40 * MS, 60 * MS)


@settings(max_examples=60)
@given(
    st.sampled_from(["random", "least_outstanding"]),
    arrival_lists,
    st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 4)), max_size=6),
)
def test_nothing_is_lost_when_instances_come_and_go(
    routing: str, arrivals: list[int], changes: list[tuple[int, int]]
) -> None:
    queue = routed(routing, instances=2, servers=4, service_ns=70)
    events = sorted([(at, 0) for at in arrivals] + changes)
    taken: list[Job] = []
    for at, instances in events:
        if instances:
            queue.resize(at, 2 * instances)
        else:
            queue.offer(at)
        taken += queue.take_ready(at)
    taken += queue.take_ready(LATER)
    assert len(taken) == len(set(taken)) == len(arrivals)
    assert {job.service_ns for job in map(reported, taken)} <= {70}
    assert queue.busy_ns(LATER) == 70 * len(arrivals)
    assert queue.present(LATER) == 0
    assert queue.next_ns() is None
    spans = np.array([(job.start_ns, job.finish_ns) for job in map(reported, taken)]).reshape(-1, 2)
    for at, _ in spans:
        assert ((spans[:, 0] <= at) & (at < spans[:, 1])).sum() <= 8


def test_instances_with_a_queue_each_have_equal_parts() -> None:
    with pytest.raises(BenchmarkError, match="3 instances with a queue each cannot have equal parts"):
        EndpointConfig(servers=4, instances=3, routing="random")
    with pytest.raises(BenchmarkError, match="routing is 'best': it must be one of shared, random, least_outstanding"):
        EndpointConfig(routing="best")
