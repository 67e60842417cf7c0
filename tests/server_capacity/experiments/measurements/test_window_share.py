"""The share of windows that keep a limit, held against simulated bursts."""

from __future__ import annotations

import numpy as np
import pytest

from server_capacity.experiments.measurements.windows import window_share
from server_capacity.search.answer import Estimate


@pytest.mark.parametrize(
    ("rate", "slope", "dispersion"), [(174.0, 26.0, 250.0), (160.0, 26.0, 250.0), (50.0, 6.0, 1.0)]
)
def test_the_share_of_windows_is_that_of_simulated_ones(rate: float, slope: float, dispersion: float) -> None:
    estimate = Estimate("p99<100ms", 174.0 if rate > 100 else 54.0, slope=slope, dispersion=dispersion)
    steps = slope * (rate / (estimate.rate or 1.0) - 1)
    of, beyond = rate * 60, max((dispersion - 1) * np.exp(0.55 * steps), 1e-6)
    random = np.random.default_rng(1)
    over = random.poisson(random.gamma(of * 0.01 * np.exp(steps) / beyond, beyond, 100_000))
    assert window_share(estimate, 0.01, rate, 60) == pytest.approx(np.mean(over <= 0.01 * of), abs=0.01)


def test_the_further_below_the_more_windows_keep_it_and_nothing_is_said_without_a_curve() -> None:
    estimate = Estimate("p99<100ms", 174.0, slope=26.0, dispersion=250.0)
    shares = [window_share(estimate, 0.01, rate, 60) or 0.0 for rate in (180, 174, 165, 150, 100)]
    assert shares == sorted(shares)
    assert shares[-1] > 0.999
    assert window_share(Estimate("p99<100ms", 174.0), 0.01, 165, 60) is None
