"""The queueing model that remembers: servers that come and stay, and services that get faster with use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.embedded.queueing.rules import DISCIPLINES
from tests.queue_models import LATER, accepted, arrival_lists, queue, served, servers_of, services

if TYPE_CHECKING:
    from inference_benchmarker.embedded.queueing.model import QueueModel

MS = 1_000_000


def growing(service_ns: int | list[int] = 100, servers: int = 1, **more: Any) -> QueueModel:
    """Two servers more, one as soon as more than two requests wait, and for as long as they are needed and 1000 ns."""
    rules = {"most_servers": servers + 2, "grow_queue": 2, "grow_delay_ns": 30, "grow_keep_ns": 1000}
    return queue(servers, service_ns, **(rules | more))


def servers_at(model: QueueModel, *instants: int) -> list[int]:
    found = []
    for at in instants:
        model.present(at)
        found.append(model.servers)
    return found


def test_a_server_is_added_when_more_wait_than_may() -> None:
    model = growing()
    accepted(model, [0, 0, 0])
    assert servers_at(model, 5) == [1]
    accepted(model, [10])
    assert servers_at(model, 39, 40) == [1, 2]


def test_servers_come_one_at_a_time_and_no_more_than_the_most() -> None:
    model = growing(10_000)
    accepted(model, [0] * 8)
    assert servers_at(model, 29, 30, 99) == [1, 2, 2]
    accepted(model, [100, 110, 129])
    assert servers_at(model, 129, 130) == [2, 3]
    accepted(model, [140, 200])
    assert servers_at(model, 5000) == [3]


def test_what_waits_is_taken_up_at_the_instant_at_which_a_server_comes() -> None:
    jobs = accepted(model := growing(), [0] * 4)
    assert [(job.start_ns, job.finish_ns) for job in served(model, jobs)] == [
        (0, 100),
        (30, 130),
        (100, 200),
        (130, 230),
    ]


def test_an_added_server_goes_when_the_others_were_enough_for_long() -> None:
    model = growing()
    accepted(model, [0] * 4)
    # Both servers are at work up to 200 ns; one alone is from then on.
    accepted(model, list(range(300, 1200, 100)))
    assert servers_at(model, 1199, 1200) == [2, 1]


def test_an_added_server_stays_as_long_as_it_is_needed_now_and_then() -> None:
    model = growing()
    accepted(model, [0] * 4)
    accepted(model, [900, 950])
    assert servers_at(model, 1999, 2000) == [2, 1]


def test_added_servers_go_one_after_the_other() -> None:
    model = growing([1000, 400, 100, 100, 100], grow_delay_ns=0)
    accepted(model, [0] * 5)
    # 0 to 1000 on one server, 0 to 400 on the second, 0 to 300 on the third.
    assert servers_at(model, 1299, 1300, 1399, 1400) == [3, 2, 2, 1]


def test_an_added_server_is_cold_at_first() -> None:
    jobs = accepted(model := growing(cold_start_ns=1000), [0] * 4)
    assert [job.service_ns for job in served(model, jobs)] == [1100, 1100, 100, 100]


def test_instances_bring_their_part_of_what_may_be_added() -> None:
    model = growing(10_000, servers=2)
    accepted(model, [0] * 9)
    model.resize(50, 4)
    assert servers_at(model, 50) == [5]
    accepted(model, [60, 100, 140, 180, 220, 260])
    assert servers_at(model, 300) == [8]
    model.resize(400, 1)
    assert servers_at(model, 400) == [2]
    assert model.server_ns(400) == 50 * 4 + 350 * 8


def test_a_server_on_its_way_does_not_come_where_there_is_no_room_left() -> None:
    model = growing(10_000, servers=2, most_servers=3)
    accepted(model, [0] * 6)
    model.resize(10, 1)
    assert servers_at(model, 100) == [1]


orders = st.sampled_from([{"discipline": name} for name in DISCIPLINES])


@settings(max_examples=60)
@given(arrival_lists, services, servers_of, orders, st.integers(0, 200))
def test_after_too_much_the_model_is_one_with_the_most_servers_for_as_long_as_they_stay(
    arrivals: list[int], services: list[int], servers: int, order: dict[str, Any], start: int
) -> None:
    flood, later = 100, 10**6
    model = growing([50] * flood + services, servers, grow_delay_ns=start, grow_keep_ns=10**9, **order)
    accepted(model, list(range(0, flood * 5, 5)))
    assert servers_at(model, later) == [servers + 2]
    twin = queue(servers + 2, services, **order)
    arrivals = [later + at for at in arrivals]
    assert served(model, accepted(model, arrivals)) == served(twin, accepted(twin, arrivals))


@settings(max_examples=60)
@given(arrival_lists, services, servers_of, orders)
def test_a_queue_that_never_gets_long_never_gets_servers(
    arrivals: list[int], services: list[int], servers: int, order: dict[str, Any]
) -> None:
    model, plain = growing(services, servers, grow_queue=60, **order), queue(servers, services, **order)
    assert served(model, accepted(model, arrivals)) == served(plain, accepted(plain, arrivals))
    assert model.servers == servers


@settings(max_examples=60)
@given(arrival_lists, services, servers_of, orders, st.tuples(st.integers(0, 300), st.integers(0, 2000)))
def test_nothing_is_lost_while_servers_come_and_go(
    arrivals: list[int], services: list[int], servers: int, order: dict[str, Any], times: tuple[int, int]
) -> None:
    model = growing(services, servers, grow_delay_ns=times[0], grow_keep_ns=times[1], **order)
    jobs = accepted(model, arrivals)
    assert all(
        servers <= count <= servers + 2
        for count in servers_at(model, *range(arrivals[-1] if arrivals else 0, 9000, 100))
    )
    done = served(model, jobs)
    assert len(done) == len(arrivals)
    assert model.busy_ns(LATER) == pytest.approx(sum(job.service_ns for job in done), abs=len(done) ** 2)
    assert servers_at(model, LATER) == [servers]


def test_a_gradual_slow_start_gets_faster_with_each_request_or_as_time_goes_by() -> None:
    counted = queue(1, 10, slow_start_requests=4, slow_start_factor=3, slow_start_gradual=True)
    assert [job.service_ns for job in served(counted, accepted(counted, [0] * 6))] == [30, 25, 20, 15, 10, 10]
    timed = queue(1, 10, slow_start_ns=100, slow_start_factor=3, slow_start_gradual=True)
    assert [job.service_ns for job in served(timed, accepted(timed, [0, 50, 75, 100]))] == [30, 20, 15, 10]


def test_who_was_alone_for_long_begins_anew() -> None:
    rules: dict[str, Any] = {"slow_start_requests": 2, "slow_start_factor": 3, "cold_start_ns": 5, "cool_ns": 100}
    model = queue(1, 10, **rules)
    jobs = accepted(model, [0, 50, 70, 179, 290, 300])
    # Nobody is there from 80 to 179, which is 99 ns, and from 189 to 290, which is 101.
    assert [job.service_ns for job in served(model, jobs)] == [35, 30, 10, 10, 35, 30]


def test_a_burst_lasts_until_what_was_saved_up_is_spent() -> None:
    model = queue(1, 10, burst_ns=25, burst_baseline=0.25)
    jobs = accepted(model, [0, 20, 40, 50, 200])
    # 25 are saved up; 15, 20 - 10 and 15 - 10 are left after three; 7.5 are less than 10; idle until 200.
    assert [job.service_ns for job in served(model, jobs)] == [10, 10, 10, 40, 10]


@pytest.mark.parametrize("discipline", ["fifo", "lifo"])
def test_without_anything_saved_up_the_capacity_is_the_baseline_s(discipline: str) -> None:
    """4 servers of 10 ms at a quarter of their speed: 100/s. A burst of 3 s lasts for 1 s: it earns 1 and spends 4."""
    model = queue(4, 10 * MS, discipline=discipline, burst_ns=3000 * MS, burst_baseline=0.25)
    finished = []
    for number in range(4000):
        model.offer(number * MS)
        finished += [number for _ in model.take_ready(number * MS)]
    assert sum(at < 900 for at in finished) == pytest.approx(4 * 90, abs=5)
    assert sum(2000 <= at < 3000 for at in finished) == pytest.approx(100, abs=5)


def test_the_part_of_a_service_that_is_left_to_do() -> None:
    model = queue(1, [100, 200, 300])
    jobs = [job for part in (1.0, 0.25, 0.1) if (job := model.offer(0, part=part))]
    assert [job.service_ns for job in served(model, jobs)] == [100, 50, 30]
