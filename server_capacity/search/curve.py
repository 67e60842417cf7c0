"""The share over a limit against rate, near the limit: a posterior of the rate at which it is just kept. Pure.

Near the limit ln(share) is about linear in ln(rate), and requests over it come in bursts: their number in a block is
negative binomial, with ``dispersion`` times the variance of independent requests (a compound Poisson process, so that
blocks of any length agree).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.search.answer import Interval
from server_capacity.search.bursts import inverse_gaussian, negative_binomial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.columns import Floats
    from server_capacity.search.points import Point

Sizes = tuple[int, int, int]
"""Of a grid: rates, slopes, dispersions."""

FINE: Sizes = (70, 14, 10)
COARSE: Sizes = (32, 9, 7)
INDEPENDENT = 0.7  # of a block: bursts go on from one to the next, and ten of them tell what seven alone would
SHORTEST, LONGEST = 0.02, 5.0  # bursts, in those at the limit


@dataclass(frozen=True, slots=True)
class Prior:
    """Of a limit before it was measured, as it is for queues of many kinds.

    ``most``: the rate at which the endpoint is saturated, with the relative ``most_sd``: where a limit on time holds
    close to it the curve is steep. ``bursty``: requests over come in long bursts (times), or in short ones (refusals).
    ``base``: the share over far below the limit, where nobody waits.
    """

    allowed: float
    most: float | None
    most_sd: float
    bursty: bool
    base: float = 0.0


@dataclass(frozen=True, slots=True)
class Fit:
    """``rate`` at which the limit is just kept (the posterior's median), its 95% interval, and what it rests on.

    ``sd`` of ln(rate); ``slope`` and ``dispersion`` are the posterior's, on average of their logarithms.
    """

    rate: float
    interval: Interval
    sd: float
    slope: float
    dispersion: float


def fit(points: Sequence[Point], prior: Prior, low: float, high: float, sizes: Sizes = FINE) -> Fit:
    """The posterior over rates from ``low`` to ``high`` (requests/s), on a coarse grid and then where it is."""
    x = np.linspace(math.log(low), math.log(high), sizes[0])
    of_rate = _posterior(points, prior, x, COARSE)[0]
    likely = np.flatnonzero(of_rate > 1e-4 * of_rate.max())
    x = np.linspace(x[max(0, likely[0] - 1)], x[min(len(x) - 1, likely[-1] + 1)], sizes[0])
    of_rate, slope, dispersion = _posterior(points, prior, x, sizes)
    beyond = np.concatenate([[0.0], np.cumsum(of_rate)])
    edges = np.concatenate([x - (x[1] - x[0]) / 2, [x[-1] + (x[1] - x[0]) / 2]])
    at_low, at_middle, at_high = np.interp([0.025, 0.5, 0.975], beyond, edges)
    mean = float(of_rate @ x)
    sd = math.sqrt(max(0.0, float(of_rate @ (x * x)) - mean * mean))
    return Fit(math.exp(at_middle), Interval(math.exp(at_low), math.exp(at_high)), sd, slope, dispersion)


def _posterior(points: Sequence[Point], prior: Prior, x: Floats, sizes: Sizes) -> tuple[Floats, float, float]:
    """Of each ln(rate); and the slope and the dispersion."""
    slopes, dispersions = np.geomspace(1.0, 300.0, sizes[1]), np.geomspace(1.05, 3000.0, sizes[2])
    log_density = np.stack([_log_prior(prior, x, slopes, dispersions)] * 2)
    for point in points:
        log_density += INDEPENDENT * _log_likelihood(point, prior, np.exp(x), slopes, dispersions)
    density = np.exp(log_density - np.max(log_density))
    density = density.sum(axis=0) / density.sum()
    of_rate, of_slope, of_dispersion = (density.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1)))
    return of_rate, math.exp(float(of_slope @ np.log(slopes))), math.exp(float(of_dispersion @ np.log(dispersions)))


def _log_likelihood(point: Point, prior: Prior, rates: Floats, slopes: Floats, dispersions: Floats) -> Floats:
    """Of the blocks of a point at each rate, slope and dispersion.

    Nearer to saturation bursts are longer; who is over without having waited does not come in bursts.
    """
    blocks = len(point.blocks)
    steps = np.clip(slopes * (point.rate / rates[:, None] - 1.0), -30.0, 30.0)
    waiting = np.maximum((prior.allowed - prior.base) * np.exp(steps), 1e-12)
    share = np.minimum(prior.base + waiting, 0.95)
    log_mean = np.log(share * point.of / blocks)[:, :, None]
    longer = np.clip(np.exp(0.55 * steps), SHORTEST, LONGEST) * np.clip(waiting / share, SHORTEST, 1.0)
    beyond = longer[:, :, None] * (dispersions - 1.0)
    return np.stack([kind(point.blocks, log_mean, beyond) for kind in (negative_binomial, inverse_gaussian)])


def _log_prior(prior: Prior, x: Floats, slopes: Floats, dispersions: Floats) -> Floats:
    """At each rate, slope and dispersion."""
    log_slopes = np.log(slopes)[None, :]
    wide = _normal(log_slopes, math.log(10.0), 1.0)
    of_slope, of_rate = np.broadcast_to(wide, (len(x), len(slopes))), np.zeros((len(x), 1))
    load, dispersion_sd = np.full((len(x), 1), 0.5), 1.0
    if prior.most is not None and prior.bursty:
        load = np.minimum(np.exp(x) / prior.most, 1.0 / (1.0 + 0.5 * prior.most_sd))[:, None]
        expected = np.log(np.maximum(4.0, 1.5 + 0.95 * math.log(1 / prior.allowed) * load / (1.0 - load)))
        sd = np.minimum(1.1, np.hypot(0.3 + 0.4 * (1.0 - load), prior.most_sd / (1.0 - load)))
        of_slope = 0.9 * _normal(log_slopes, expected, sd) + 0.1 * wide
        of_rate = -0.5 * (np.maximum(0.0, x - math.log(prior.most)) / prior.most_sd)[:, None] ** 2
        dispersion_sd = 0.8
    longest = (5.0 * load if prior.bursty else np.full_like(load, 0.6)) * math.sqrt(prior.allowed / 0.01)
    expected_dispersion = np.log1p(longest * slopes[None, :])[:, :, None]
    of_dispersion = _normal(np.log(dispersions), expected_dispersion, dispersion_sd)
    return np.asarray((of_rate + np.log(of_slope + 1e-30))[:, :, None] + np.log(of_dispersion + 1e-30))


def _normal(value: Floats, mean: Floats | float, sd: Floats | float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((value - mean) / sd) ** 2) / sd)
