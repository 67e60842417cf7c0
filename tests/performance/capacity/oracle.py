"""An oracle: it counts for the search's time at the true rate, from a warm queue, and knows the curve's slope."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.performance.capacity.queues import Queue
from tests.performance.capacity.truths import kept, share_over

if TYPE_CHECKING:
    from server_capacity.search.limits import Limit
    from tests.performance.capacity.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Oracle:
    """``score``: its median interval score, requests/s; ``slope``: d ln share / d ln rate at the truth.

    ``share_sd``: of the share in one time, over the share allowed.
    """

    score: float
    slope: float
    share_sd: float


def holding(endpoint: Endpoint) -> Limit:
    """The limit whose capacity is the endpoint's: the first, by the way the endpoints are made."""
    return endpoint.limits[0]


def oracle(endpoint: Endpoint, seconds: float = 180.0, windows: int = 1000) -> Oracle:
    """Of one endpoint; kept in the user's cache.

    Its estimate is linear in the share (the delta method), its interval as wide as covers 95%.
    """
    key = repr((endpoint, seconds, windows))
    return Oracle(*kept(f"oracle-{endpoint.name}-{seconds:g}", key, lambda: _made(endpoint, seconds, windows)))


def _made(endpoint: Endpoint, seconds: float, windows: int) -> tuple[float, float, float]:
    assert endpoint.truth is not None
    limit, truth = holding(endpoint), endpoint.truth
    arrivals = 1e4 * windows
    below, above = (share_over(endpoint, limit, truth * factor, arrivals) for factor in (0.98, 1.02))
    slope = math.log(max(above, 1e-9) / max(below, 1e-9)) / math.log(1.02 / 0.98)
    counts = Queue(endpoint.rules, 1).long_run(
        2, truth, limit.bound_s or math.inf, min(600.0, 5000 * endpoint.rules.mean_s), seconds, windows
    )
    of, over, refused = counts
    shares = refused / of if limit.metric == "success" else over / np.maximum(1, of - refused)
    misses = np.abs(shares / limit.allowed - 1) / slope * truth
    half = float(np.quantile(misses, 0.95))
    score = float(np.median(2 * half + 40 * np.maximum(0, misses - half)))
    return score, slope, float(np.std(shares) / limit.allowed)
