"""The service time of each request of the embedded endpoint, drawn from a seed. Pure."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.config import SERVICE_KINDS
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.embedded.config import EndpointConfig


def service_times(config: EndpointConfig) -> Callable[[], int]:
    """A reproducible stream of service times in ns: each call draws the next.

    Raises ValueError for a kind that is none of SERVICE_KINDS.
    """
    draws = random.Random(f"service:{config.seed}")
    mean_s = config.service_s
    if config.service == "none":
        return lambda: 0
    if config.service == "fixed":
        fixed = round(mean_s * NS)
        return lambda: fixed
    if config.service == "exponential":
        return lambda: round(draws.expovariate(1 / mean_s) * NS)
    if config.service == "lognormal":
        return _lognormal(draws, mean_s, config.cv)
    if config.service == "bimodal":
        return _bimodal(draws, mean_s, config.slow_share, config.slow_factor)
    raise ValueError(f"service {config.service!r} is none of {', '.join(SERVICE_KINDS)}")


def _lognormal(draws: random.Random, mean_s: float, cv: float) -> Callable[[], int]:
    """``cv``: standard deviation / mean. From the moments, sigma^2 = ln(1 + cv^2) and mu = ln(mean) - sigma^2 / 2."""
    variance = math.log1p(cv * cv)
    mu, sigma = math.log(mean_s) - variance / 2, math.sqrt(variance)
    return lambda: round(draws.lognormvariate(mu, sigma) * NS)


def _bimodal(draws: random.Random, mean_s: float, slow_share: float, slow_factor: float) -> Callable[[], int]:
    """Two times, of which the slow one is ``slow_factor`` times the fast one and is drawn with ``slow_share``."""
    fast = mean_s * NS / (1 - slow_share + slow_share * slow_factor)
    times = round(fast), round(fast * slow_factor)
    return lambda: times[draws.random() < slow_share]
