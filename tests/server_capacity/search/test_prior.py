"""What is predicted of a limit's curve and of its bursts, compared with queues whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from server_capacity.search.prior import Prior, bursts, rate_density, slope_density

P99, P95 = 0.01, 0.05


@pytest.mark.parametrize(
    ("prior", "rate", "slope", "dispersion"),
    [
        (Prior(P99, 200.0, 0.03, bursty=True, room_s=0.08), 174.0, 33.1, 98.0),  # 4 x exactly 20 ms, p99 < 100 ms
        (Prior(P99, 200.0, 0.03, bursty=True, room_s=0.18), 175.0, 29.8, 190.0),  # 4 x exponential 20 ms, p99 < 200 ms
        (Prior(P99, 100.0, 0.03, bursty=True, room_s=0.09), 53.9, 5.4, 10.3),  # 1 x exponential 10 ms, p99 < 100 ms
        (Prior(P95, 320.0, 0.03, bursty=True, room_s=0.1), 300.4, 36.1, 307.0),  # 16 x lognormal 50 ms, p95 < 150 ms
        (Prior(P99, 200.0, 0.05, bursty=False), 154.9, 9.4, 5.8),  # 4 x exponential 20 ms that refuse when 10 wait
    ],
)
def test_queues_are_as_steep_and_as_bursty_as_predicted(
    prior: Prior, rate: float, slope: float, dispersion: float
) -> None:
    """Their truths are from runs of 1,000 times 180 s at the limit."""
    rates, slopes = np.array([[rate]]), np.geomspace(1.0, 250.0, 400)
    load = prior.load(rates)
    density = slope_density(prior, load, np.log(slopes)[None, :])[0]
    assert abs(math.log(slopes[density.argmax()] / slope)) < 0.3

    longest, sd = bursts(prior, rates, load)
    assert abs(math.log((1.0 + float(longest[0, 0]) * slope) / dispersion)) < float(sd[0, 0])


@pytest.mark.parametrize(
    ("prior", "rate", "dispersion"),
    [
        (Prior(P99, 200.0, 0.03, bursty=True, room_s=0.18), 175.0, 190.0),  # 4 x exponential 20 ms, p99 < 200 ms
        (Prior(P99, 100.0, 0.03, bursty=True, room_s=0.09), 53.9, 10.3),  # 1 x exponential 10 ms, p99 < 100 ms
    ],
)
def test_exponential_queues_have_the_bursts_of_a_diffusion_at_every_load(
    prior: Prior, rate: float, dispersion: float
) -> None:
    load = np.array([[rate / (prior.most or 1.0)]])
    slope = math.log(1.0 / prior.allowed) * load / (1.0 - load)
    longest, _ = bursts(prior, np.array([[rate]]), load)
    assert 1.0 + float((longest * slope)[0, 0]) == pytest.approx(dispersion, rel=0.1)


@pytest.mark.parametrize(
    ("prior", "rate"),
    [
        (Prior(P99, 200.0, 0.03, bursty=True, room_s=0.08), 174.0),  # 4 x exactly 20 ms, p99 < 100 ms
        (Prior(P99, 200.0, 0.03, bursty=True, room_s=0.18), 175.0),  # 4 x exponential 20 ms, p99 < 200 ms
        (Prior(P99, 100.0, 0.03, bursty=True, room_s=0.09), 53.9),  # 1 x exponential 10 ms, p99 < 100 ms
        (Prior(P95, 320.0, 0.03, bursty=True, room_s=0.1), 300.4),  # 16 x lognormal 50 ms, p95 < 150 ms
        (Prior(P99, 20_000.0, 0.03, bursty=True, room_s=0.1), 19_939.0),  # 400 x exponential 20 ms, p99 < 120 ms
    ],
)
def test_the_rate_of_a_queue_follows_from_its_saturation_and_the_time_that_it_may_wait(
    prior: Prior, rate: float
) -> None:
    x = np.linspace(math.log(rate) - 3.0, math.log(rate) + 1.0, 2001)
    density = rate_density(prior, x) - rate_density(prior, x[:1])  # without the chance that it is no such queue
    below = np.cumsum(density) / density.sum()
    assert 0.05 < below[1500] < 0.95
    assert abs(x[density.argmax()] - math.log(rate)) < 0.2


def test_a_rate_is_as_likely_as_another_where_waiting_does_not_tell_it() -> None:
    x = np.log([10.0, 100.0, 190.0])
    for prior in (
        Prior(P99, 200.0, 0.03, bursty=True),
        Prior(P99, None, 0.0, bursty=True),
        Prior(P99, 200.0, 0.03, False),
    ):
        assert np.ptp(rate_density(prior, x)) == pytest.approx(0.0)
    above = rate_density(Prior(P99, 200.0, 0.03, bursty=True), np.log([200.0, 220.0, 300.0]))
    assert above[0] > above[1] > above[2] > 0.0


def test_what_waiting_does_not_explain_is_left_open() -> None:
    gaps = Prior(P99, 200.0, 0.03, bursty=True)
    load = gaps.load(np.array([[174.0]]))
    assert float(bursts(gaps, np.array([[174.0]]), load)[1][0, 0]) == pytest.approx(1.0)


def test_where_nothing_tells_the_load_it_is_a_half() -> None:
    assert Prior(P99, None, 0.0, bursty=True).load(np.array([5.0, 500.0])).tolist() == [0.5, 0.5]
