"""The twin: what a queue did tells its servers, services and overhead; closed forms, other disciplines, a judgement."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
import pytest

from server_capacity.search.limits import Limit
from server_capacity.twin.crossing import crossing
from server_capacity.twin.fit import Refused, fit
from server_capacity.twin.misfit import judge
from server_capacity.twin.shares import Variants, ranked
from server_capacity.twin.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.twin.trace import Floats

    Services = Callable[[int], Floats]

LIMIT = Limit("p99<100ms", "response_time", 0.01, 0.1)
RATES = (20, 45, 101, 227, 0, 151, 185, 168, 174, 165, 176, 170, 178, 160)


def arrivals(seed: int, rates: tuple[float, ...] = RATES, seconds: float = 6) -> Floats:
    draws = np.random.default_rng(seed)
    dues = [
        i * seconds + np.sort(draws.uniform(0, seconds, draws.poisson(rate * seconds))) for i, rate in enumerate(rates)
    ]
    return np.concatenate(dues)


def trace(due: Floats, ends: Floats) -> Trace:
    return Trace(due, ends - due, np.ones(len(due), bool))


def fifo(due: Floats, services: Floats, servers: int, overhead: float = 0.001) -> Trace:
    free = [0.0] * servers
    ends = []
    for at, service in zip(due.tolist(), services.tolist(), strict=True):
        end = max(at, free[0]) + service
        heapq.heapreplace(free, end)
        ends.append(end + overhead)
    return trace(due, np.array(ends))


def lifo(due: Floats, services: Floats, servers: int) -> Trace:
    ends, waiting, busy = np.empty(len(due)), list[int](), list[float]()
    for number, at in enumerate([*due.tolist(), np.inf]):
        while busy and busy[0] <= at:
            free = heapq.heappop(busy)
            if waiting:
                taken = waiting.pop()
                ends[taken] = free + services[taken]
                heapq.heappush(busy, ends[taken])
        if number == len(due):
            return trace(due, ends)
        if len(busy) < servers:
            ends[number] = at + services[number]
            heapq.heappush(busy, ends[number])
        else:
            waiting.append(number)
    raise AssertionError


def exponential(count: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).exponential(0.02, count)


def same(count: int) -> Floats:
    return np.full(count, 0.02)


@pytest.mark.parametrize("services", [same, exponential])
def test_the_servers_the_services_and_the_overhead_are_found(services: Services) -> None:
    due = arrivals(1)
    twin = fit([fifo(due, services(len(due)), 4)])
    assert not isinstance(twin, Refused), twin
    assert twin.servers == 4
    assert twin.services_s.mean() == pytest.approx(0.02, rel=0.02)
    assert twin.overhead_s == pytest.approx(0.001, abs=0.0006)


@pytest.mark.parametrize("services", [same, exponential])
def test_last_come_first_served_is_refused(services: Services) -> None:
    due = arrivals(2)
    refused = fit([lifo(due, services(len(due)), 4)])
    assert isinstance(refused, Refused)
    assert "overtook" in refused.reason


def test_an_endpoint_whose_requests_fail_is_refused() -> None:
    due = arrivals(3)
    wave = fifo(due, same(len(due)), 4)
    wave.ok[::100] = False
    assert fit([wave]) == Refused("1.0% of requests failed, and a queue that refuses is not described")


def test_a_wave_without_waiting_tells_no_servers() -> None:
    due = arrivals(4, (5, 5, 5))
    assert isinstance(fit([fifo(due, same(len(due)), 4)]), Refused)


@pytest.mark.parametrize(
    ("servers", "services", "bound", "rate"),
    [
        (1, exponential, 0.2, 50 - np.log(100) / 0.2),  # M/M/1: the response time is exponential, too
        (4, exponential, 0.2, 175.2),
        (4, same, 0.1, 174.0),
    ],
)
def test_the_capacity_is_that_of_the_closed_form(servers: int, services: Services, bound: float, rate: float) -> None:
    ranks = (np.arange(100_000) + 0.5) / 100_000
    values = same(1) if services is same else -np.log1p(-ranks) * 0.02
    found = crossing(Variants(servers, ranked(values)[None], np.zeros(1)), bound, 0.01, sample=400_000)
    assert found.rate == pytest.approx(rate, rel=0.02)


def test_it_foretells_a_wave_that_it_has_not_seen_and_not_one_of_a_slower_endpoint() -> None:
    due, later = arrivals(5), arrivals(6, (168,) * 5)
    twin = fit([fifo(due, same(len(due)), 4)])
    assert not isinstance(twin, Refused)
    assert judge(twin, fifo(later, same(len(later)), 4), [LIMIT]).reason == ""
    slower = judge(twin, fifo(later, same(len(later)) * 1.1, 4), [LIMIT])
    assert not slower.fits
    assert "p99" in slower.reason
