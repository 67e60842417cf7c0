"""The share over a limit against rate, near the limit: a posterior of the rate at which it is just kept. Pure.

Near the limit ln(share) is about linear in ln(rate), and requests over it come in bursts: their number is compound
Poisson with logarithmic bursts (negative binomial), with ``dispersion`` times the variance of independent requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.search.answer import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.columns import Floats
    from server_capacity.search.points import Point

SLOPES = np.geomspace(1.5, 90.0, 14)
DISPERSIONS = np.geomspace(1.3, 1500.0, 12)
RATES = 160
SLOPE_MEAN, SLOPE_SD = math.log(20.0), 0.9
DISPERSION_AT_SLOPE_1, DISPERSION_PER_SLOPE, DISPERSION_SD = 1.0, 1.15, 1.0


@dataclass(frozen=True, slots=True)
class Fit:
    """``rate`` at which the limit is just kept (the posterior's median), its 95% interval, and what it rests on."""

    rate: float
    interval: Interval
    sd: float
    slope: float
    dispersion: float


def fit(points: Sequence[Point], allowed: float, low: float, high: float) -> Fit:
    """The posterior over ln(rate) from ``low`` to ``high`` (requests/s), slope and dispersion."""
    x = np.linspace(math.log(low), math.log(high), RATES)
    density = np.exp(_log_posterior(points, allowed, x))
    of_rate = density.sum(axis=(1, 2))
    of_rate /= of_rate.sum()
    of_slope, of_dispersion = density.sum(axis=(0, 2)), density.sum(axis=(0, 1))
    beyond = np.concatenate([[0.0], np.cumsum(of_rate)])
    edges = np.concatenate([x - (x[1] - x[0]) / 2, [x[-1] + (x[1] - x[0]) / 2]])
    at_low, at_middle, at_high = np.interp([0.025, 0.5, 0.975], beyond, edges)
    mean = float((of_rate * x).sum())
    return Fit(
        rate=math.exp(at_middle),
        interval=Interval(math.exp(at_low), math.exp(at_high)),
        sd=math.sqrt(max(0.0, float((of_rate * x * x).sum()) - mean * mean)),
        slope=math.exp(float((of_slope * np.log(SLOPES)).sum() / of_slope.sum())),
        dispersion=math.exp(float((of_dispersion * np.log(DISPERSIONS)).sum() / of_dispersion.sum())),
    )


def _log_posterior(points: Sequence[Point], allowed: float, x: Floats) -> Floats:
    """Of each rate, slope and dispersion; its highest value is 0."""
    slopes, dispersions = SLOPES[None, :], DISPERSIONS[None, None, :]
    expected = np.zeros((len(x), len(SLOPES)))
    likely = np.zeros((len(x), len(SLOPES)))
    bursts, over = 0, 0
    for point in points:
        away = math.log(point.rate) - x[:, None]
        log_mean = np.minimum(math.log(allowed) + slopes * away, 0.0) + math.log(point.of)
        expected += np.exp(log_mean)
        likely += point.bursts * log_mean
        bursts += point.bursts
        over += point.over
    log_density = (
        likely[:, :, None]
        - bursts * np.log(dispersions - 1.0)
        + over * np.log1p(-1.0 / dispersions)
        - expected[:, :, None] * np.log(dispersions) / (dispersions - 1.0)
        + _log_prior()
    )
    highest: float = log_density.max()
    return np.asarray(log_density - highest)


def _log_prior() -> Floats:
    """Of slope and dispersion: steep curves come with long bursts."""
    slopes, dispersions = np.log(SLOPES)[None, :, None], np.log(DISPERSIONS)[None, None, :]
    expected = DISPERSION_AT_SLOPE_1 + DISPERSION_PER_SLOPE * slopes
    return np.asarray(
        -0.5 * ((slopes - SLOPE_MEAN) / SLOPE_SD) ** 2 - 0.5 * ((dispersions - expected) / DISPERSION_SD) ** 2
    )
