"""The knowledge of a limit before it was measured: how steep its curve is, how long bursts are, as in queues. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Floats

LEAST_LOAD, LEAST_SLOPE = 0.05, 3.0
MISTAKEN, MISTAKEN_SD = 0.15, 0.2  # the chance that it is no such queue, or completes more than it did: by how much
STEPS = np.linspace(-2.4, 2.4, 13)
VARIABILITY, WEIGHTS = np.exp(-0.2 + 0.75 * STEPS), np.exp(-0.5 * STEPS**2) / np.exp(-0.5 * STEPS**2).sum()
_LEAST_MOST = 1e-9  # of an endpoint that answered nothing in time


@dataclass(frozen=True, slots=True)
class Prior:
    """Of a limit before it was measured, as it is for queues of many kinds.

    ``most``: the rate at which the endpoint is saturated, with the relative ``most_sd``: where a limit on time holds
    close to it the curve is steep. ``bursty``: requests over come in long bursts (times), or in short ones (refusals).
    ``base``: the share over far below the limit, where nobody waits. ``room_s``: so long may a request wait until it is
    over the limit (seconds), 0 where waiting is not what the limit is on.
    """

    allowed: float
    most: float | None
    most_sd: float
    bursty: bool
    base: float = 0.0
    room_s: float = 0.0

    def load(self, rate: Floats) -> Floats:
        """The part of the endpoint that is busy at each rate, below 1; a half where it is unknown."""
        if self.most is None:
            return np.full_like(rate, 0.5)
        return np.asarray(np.clip(rate / max(self.most, _LEAST_MOST), LEAST_LOAD, 1.0 / (1.0 + 0.5 * self.most_sd)))


def rate_density(prior: Prior, x: Floats) -> Floats:
    """Of the logarithm of the rate at which a limit is just kept, but for a constant factor.

    Near saturation the wait for servers is exponential, of mean k / (most (1 - load)), with k = (1 + cv^2) / 2 of the
    services (Kingman, Proc. Camb. Phil. Soc. 57, 1961; of many servers Kollerstrom, J. Appl. Prob. 11, 1974): the load
    at the limit is about exp(-k ln(1 / P) / (most room)). Of 166 endpoints, ln k is -0.15 in the median, its sd 0.66.
    """
    if prior.most is None or not prior.bursty:
        return np.ones_like(x)
    most = max(prior.most, _LEAST_MOST)
    above = np.maximum(0.0, x - math.log(most))
    queue = np.exp(-0.5 * (above / prior.most_sd) ** 2)
    if prior.room_s:
        idle = VARIABILITY * math.log(1.0 / prior.allowed) / (most * prior.room_s)
        queue = normal(x[:, None], math.log(most) - idle, prior.most_sd) @ WEIGHTS / math.sqrt(2.0 * math.pi)
    return np.asarray((1.0 - MISTAKEN) * queue + MISTAKEN * np.exp(-0.5 * (above / MISTAKEN_SD) ** 2))


def slope_of_waits(allowed: float, load: Floats) -> Floats:
    """The slope to expect of a limit on time that is just kept at a load."""
    return np.asarray(np.maximum(LEAST_SLOPE, 1.5 + 0.95 * math.log(1.0 / allowed) * load / (1.0 - load)))


def slope_density(prior: Prior, load: Floats, log_slopes: Floats) -> Floats:
    """By the exponential tail of a wait, as in M/M/1: d ln P / d ln(rate) = ln(1 / P) load / (1 - load).

    Of what is refused, by the diffusion that two walls reflect: (ln((1 - load) / P) - 1) load / (1 - load).
    """
    wide = normal(log_slopes, math.log(10.0), 1.0)
    if prior.most is None:
        return np.broadcast_to(wide, (len(load), log_slopes.shape[1]))
    if not prior.bursty:
        refused = np.maximum(2.0, 1.5 + (np.log((1.0 - load) / max(prior.allowed, 1e-9)) - 1.0) * load / (1.0 - load))
        return np.asarray(0.8 * normal(log_slopes, np.log(refused), 0.4) + 0.2 * wide)
    expected = slope_of_waits(prior.allowed, load)
    tells = (expected - 1.5) / expected * (expected > LEAST_SLOPE)
    sd = np.minimum(1.1, np.hypot(0.3 + 0.2 * (1.0 - load), tells * prior.most_sd / (1.0 - load)))
    return np.asarray(0.9 * normal(log_slopes, np.log(expected), sd) + 0.1 * wide)


def bursts(prior: Prior, rate: Floats, load: Floats) -> tuple[Floats, Floats]:
    """The dispersion less 1, over the slope, at each rate; and the sd of the logarithm of that.

    Of a wait that diffuses with drift load - 1, reflected at 0, the variance of the time above a level with share P is
    4 (1 - P (1 + ln(1 / P))) / (drift x decay of the tail) times that of independent instants (from the variance of a
    diffusion's integrals: Whitt, Oper. Res. 40, 1992). The decay is ln(1 / P) over the room. The slope tells the drift,
    as 1 / (1 - load) = slope / (load ln(1 / P)). At low load a wait ends sooner than a diffusion's.
    """
    if not prior.bursty:
        times = 1.0 if prior.most is not None else math.sqrt(prior.allowed / 0.01)
        return np.full_like(load, 0.6 * times), np.full_like(load, 0.5 if prior.most is not None else 1.0)
    if prior.most is None or not prior.room_s:
        return 5.0 * load * math.sqrt(prior.allowed / 0.01), np.full_like(load, 1.0)
    decay = math.log(1.0 / prior.allowed)
    together = 4.0 * (1.0 - prior.allowed * (1.0 + decay)) / decay**2
    return together * rate * prior.room_s / load, 0.45 + 0.6 * (1.0 - load)


def normal(value: Floats, mean: Floats | float, sd: Floats | float) -> Floats:
    """The density of a normal distribution, but for a constant factor."""
    return np.asarray(np.exp(-0.5 * ((value - mean) / sd) ** 2) / sd)
