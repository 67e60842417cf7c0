"""The queueing model while its number of servers changes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.embedded.queueing.rules import DISCIPLINES
from tests.queue_models import LATER, arrival_lists, queue, served, servers_of, services

if TYPE_CHECKING:
    from inference_benchmarker.embedded.queueing.job import Job
    from inference_benchmarker.embedded.queueing.model import QueueModel

MS = 1_000_000


def flooded(model: QueueModel, changes: dict[int, int], requests: int) -> list[Job]:
    """A queue that never empties: all arrive at 0, and the number of servers changes at these instants."""
    jobs = [job for _ in range(requests) if (job := model.offer(0))]
    for at, servers in sorted(changes.items()):
        model.resize(at, servers)
    return jobs


def change(before: int, after: int) -> int:
    """Just before all servers are free at 100 ms, so that none of those that end begins again; or then."""
    return 100 * MS - (after < before)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize(("before", "after"), [(2, 6), (6, 2), (4, 4), (1, 7)])
def test_the_capacity_is_exactly_that_of_the_servers_there_are(discipline: str, before: int, after: int) -> None:
    """K servers are k busy servers while the queue is never empty, from the instant on at which they are k."""
    model = queue(before, 10 * MS, discipline=discipline)
    flooded(model, {change(before, after): after}, 1000)
    work = model.busy_ns(100 * MS)
    assert work == pytest.approx(before * 100 * MS, abs=before)
    assert model.busy_ns(200 * MS) - work == after * 100 * MS


@pytest.mark.parametrize("discipline", ["fifo", "lifo"])
@pytest.mark.parametrize(("before", "after"), [(2, 6), (6, 2), (3, 4)])
def test_a_changed_number_of_servers_answers_that_many_in_each_service_time(
    discipline: str, before: int, after: int
) -> None:
    """K servers that take 10 ms each answer k requests every 10 ms."""
    model = queue(before, 10 * MS, discipline=discipline)
    flooded(model, {change(before, after): after}, 1000)
    assert len(model.take_ready(100 * MS)) == before * 10
    assert [len(model.take_ready(at * MS)) for at in range(110, 210, 10)] == [after] * 10


def test_those_that_wait_are_taken_up_at_the_instant_at_which_servers_come() -> None:
    model = queue(1, 100)
    jobs = flooded(model, {30: 3}, 4)
    assert [(job.start_ns, job.finish_ns) for job in served(model, jobs)] == [
        (0, 100),
        (30, 130),
        (30, 130),
        (100, 200),
    ]


def test_a_server_ends_with_what_it_serves() -> None:
    model = queue(3, [100, 50, 80, 10, 10])
    jobs = flooded(model, {20: 1}, 5)
    assert (model.busy(20), model.queue_length(20)) == (3, 2)
    assert [(job.start_ns, job.finish_ns) for job in served(model, jobs)] == [
        (0, 100),
        (0, 50),
        (0, 80),
        (100, 110),
        (110, 120),
    ]
    assert model.busy_ns(LATER) == 250
    # 3 up to 50, 2 up to 80 and 1 from then on: those that end count until they have
    assert model.server_ns(LATER) == LATER + 2 * 50 + 30


def test_those_that_share_servers_share_what_is_left() -> None:
    model = queue(2, 100, discipline="ps")
    jobs = flooded(model, {50: 1}, 2)
    assert [job.finish_ns for job in served(model, jobs)] == [150, 150]


def test_new_servers_are_cold_and_those_that_never_worked_end_first() -> None:
    model = queue(1, 10, cold_start_ns=100)
    assert model.offer(0)
    model.resize(200, 3)
    model.resize(200, 2)
    jobs = [job for _ in range(3) if (job := model.offer(300))]
    assert [job.finish_ns for job in served(model, jobs)] == [410, 310, 320]


def test_a_queue_that_is_full_has_room_when_servers_come() -> None:
    model = queue(1, 100, limit=1)
    assert [model.offer(0) is not None for _ in range(3)] == [True, True, False]
    model.resize(10, 2)
    assert [model.offer(10) is not None for _ in range(2)] == [True, False]


changes_of = st.dictionaries(st.integers(0, 4000), st.integers(1, 6), max_size=6)
orders = st.sampled_from([{"discipline": name} for name in DISCIPLINES])


@settings(max_examples=60)
@given(arrival_lists, services, servers_of, changes_of, orders)
def test_nothing_is_lost_and_no_more_is_in_service_than_there_are_servers(
    arrivals: list[int], services: list[int], servers: int, changes: dict[int, int], rules: dict[str, Any]
) -> None:
    model = queue(servers, services, **rules)
    jobs: list[Job] = []
    for at in sorted({*arrivals, *changes}):
        if at in changes:
            model.resize(at, changes[at])
        jobs += [job for _ in range(arrivals.count(at)) if (job := model.offer(at))]
    done = served(model, jobs)
    assert len(done) == len(arrivals)
    assert model.busy_ns(LATER) == pytest.approx(sum(job.service_ns for job in done), abs=len(done) ** 2)
    if rules["discipline"] == "ps":
        return
    assert [job.finish_ns - job.start_ns for job in done] == services[: len(done)]
    times = [-1, *sorted(changes), LATER]
    for (begin, end), there in zip(pairwise(times), [servers, *(changes[at] for at in sorted(changes))], strict=True):
        for one in done:
            if begin <= one.start_ns < end and one.start_ns not in changes:
                assert sum(other.start_ns <= one.start_ns < other.finish_ns for other in done) <= there
