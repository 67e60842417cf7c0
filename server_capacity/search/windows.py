"""The share of windows at a rate that keep a limit, and the chance of a count, by the bursts that were seen. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from server_capacity.search.answer import Estimate

SHORTER = 0.55  # bursts are shorter below the limit, as the share over is smaller: the power of it


def window_share(estimate: Estimate, allowed: float, rate: float, seconds: float) -> float | None:
    """Of windows of so many seconds at ``rate`` (requests/s), the share with at most ``allowed`` over the limit.

    Requests over in a window are negative binomial; None where the estimate has no slope or dispersion.
    """
    if estimate.rate is None or estimate.slope is None or estimate.dispersion is None:
        return None
    steps = estimate.slope * (rate / estimate.rate - 1.0)
    mean = rate * seconds * min(1.0, allowed * math.exp(steps))
    beyond = max((estimate.dispersion - 1.0) * math.exp(SHORTER * steps), 1e-6)
    return at_most(int(allowed * rate * seconds + 1e-9), mean, beyond)


def at_most(count: int, mean: float, beyond: float) -> float:
    """The chance of at most ``count``, of a negative binomial of variance ``mean`` (1 + ``beyond``)."""
    if count < 0:
        return 0.0
    shape, numbers = mean / beyond, np.arange(count)
    ratios = np.log((numbers + shape) / (numbers + 1) * beyond / (1.0 + beyond))
    logs = -shape * math.log1p(beyond) + np.concatenate([[0.0], np.cumsum(ratios)])
    return min(1.0, float(np.exp(logs).sum()))
