"""The capacity of the embedded endpoint is known: by closed forms, or by its own model in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from inference_benchmarker.embedded.config import EndpointConfig
from tests.queue_capacity import (
    Load,
    Simulation,
    closed_capacity,
    fixed_longer,
    response_times,
    simulated_capacity,
)

LIMIT_S = 0.1
GROWING = EndpointConfig(most_servers=8, grow_queue=40)
CACHING = EndpointConfig(cache_size=100, cache_speedup=4)
OVERSHOOT = Load(rate=2000, seconds=0.2)
WARMING = Load(rate=50, seconds=4)


def test_the_closed_form_of_fixed_service_times_is_that_of_long_simulations() -> None:
    """40 million arrivals gave 174.0/s for M/D/4, where the share grows with the 26th power of the rate."""
    assert fixed_longer(4, 0.02, 174, LIMIT_S) == pytest.approx(0.01, rel=0.03)


@pytest.mark.slow
def test_closed_forms_give_the_capacity() -> None:
    """For M/M/1 it is mu - ln(100) / limit."""
    assert closed_capacity(4, 0.02, LIMIT_S, fixed=True) == pytest.approx(173.96, rel=1e-3)
    assert closed_capacity(1, 0.01, LIMIT_S, fixed=False) == pytest.approx(53.95, rel=1e-3)


@pytest.mark.parametrize(
    ("config", "more", "servers", "service_s"),
    [
        (EndpointConfig(), {}, 4, 0.02),
        (GROWING, {}, 4, 0.02),
        (GROWING, {"before": OVERSHOOT}, 8, 0.02),
        (CACHING, {"payloads": 101, "before": WARMING}, 4, 0.02),
        (CACHING, {"payloads": 100, "before": WARMING}, 4, 0.005),
    ],
    ids=["plain", "before the overshoot", "after it", "cold", "warm"],
)
@pytest.mark.slow
def test_an_endpoint_that_remembers_has_two_capacities(
    config: EndpointConfig, more: dict[str, Any], servers: int, service_s: float
) -> None:
    truth = closed_capacity(servers, service_s, LIMIT_S, fixed=True)
    assert simulated_capacity(config, LIMIT_S, arrivals=100_000, **more) == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize(
    ("config", "before", "payloads", "rate", "kept"),
    [
        (GROWING, None, None, 150, True),
        (GROWING, None, None, 195, False),
        (GROWING, OVERSHOOT, None, 340, True),
        (CACHING, WARMING, 101, 195, False),
        (CACHING, WARMING, 100, 720, True),
    ],
)
def test_what_an_endpoint_has_seen_decides_what_it_can_take(
    config: EndpointConfig, before: Load | None, payloads: int | None, rate: float, *, kept: bool
) -> None:
    """The truths are 174/s for 4 servers of 20 ms, 373/s for 8, and 776/s for 4 of 5 ms."""
    simulation = Simulation(config, payloads)
    if before:
        simulation.send(before)
    times = response_times(simulation.send(Load(rate, 5000 / rate)))
    assert ((times > LIMIT_S).mean() < 0.01) == kept


def test_the_model_answers_as_late_as_the_formula_says() -> None:
    times = response_times(Simulation(EndpointConfig()).send(Load(150, 80)))
    assert (times > 0.03).mean() == pytest.approx(fixed_longer(4, 0.02, 150, 0.03), rel=0.1)
