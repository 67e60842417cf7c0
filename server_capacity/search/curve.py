"""The share over a limit against rate, near the limit: a posterior of the rate at which it is just kept. Pure.

Near the limit ln(share) is about linear in rate, and where load is low, in ln(rate). Requests over it come in bursts:
their number in a block is negative binomial, or of a longer tail, with ``dispersion`` times the variance of independent
requests (a compound Poisson process, so that blocks of any length agree).

A posterior knows the queues that its prior knows. By split conformal prediction (Vovk, Gammerman and Shafer, 2005) the
ends of its interval are moved by what they lacked in searches of a family of endpoints whose capacities are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.summary.statistics.burst_counts import inverse_gaussian, negative_binomial
from server_capacity.search.answer import Interval
from server_capacity.search.points import SATURATED
from server_capacity.search.prior import bursts, normal, rate_density, slope_density

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.columns import Floats
    from server_capacity.search.points import Point
    from server_capacity.search.prior import Prior

Sizes = tuple[int, int, int]
"""Of a grid: rates, slopes, dispersions."""

FINE: Sizes = (50, 22, 9)
COARSE: Sizes = (32, 10, 7)
FLATTEST, STEEPEST = 1.0, 250.0
CARRIED = 0.25  # of a block where load is a half or more: it repeats what the one before it said, as bursts go on
WELL_OVER = 1.5  # of what is allowed: a share below it tells on which side of the limit a rate is
SHORTEST, LONGEST = 0.02, 5.0  # bursts, in those at the limit
DOUBTED = 0.15  # the chance that what queues in general do does not apply


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
    slopes, away = np.geomspace(FLATTEST, STEEPEST, sizes[1]), np.linspace(-2.6, 2.2, sizes[2])
    log_slope, dispersions, log_dispersion = _log_prior(prior, x, slopes, away)
    log_density = np.stack([log_slope[:, :, None] + log_dispersion] * 2)
    weight = 1.0 - CARRIED * min(1.0, 2.0 * float(prior.load(np.exp(x)).mean())) if prior.bursty else 1.0
    for point in points:
        log_density += weight * _log_likelihood(point, prior, np.exp(x), slopes, dispersions)
    density = np.exp(log_density - np.max(log_density))
    density = density.sum(axis=0) / density.sum()
    of_rate, of_slope = (density.sum(axis=axes) for axes in ((1, 2), (0, 2)))
    return of_rate, math.exp(float(of_slope @ np.log(slopes))), math.exp(float((density * np.log(dispersions)).sum()))


def _log_likelihood(point: Point, prior: Prior, rates: Floats, slopes: Floats, dispersions: Floats) -> Floats:
    """Of the blocks of a point at each rate, slope and dispersion.

    Nearer to saturation bursts are longer; who is over without having waited does not come in bursts. The share of a
    stretch that was saturated tells how long it was, and no more than that it was saturated.
    """
    blocks = len(point.blocks)
    steps = np.clip(slopes * _above(point.rate, prior, rates)[:, None], -30.0, 30.0)
    waiting = np.maximum((prior.allowed - prior.base) * np.exp(steps), 1e-12)
    saturated = point.share >= max(SATURATED, WELL_OVER * prior.allowed)
    share = np.minimum(prior.base + waiting, point.share if saturated else 0.95)
    log_mean = np.log(share * point.of / blocks)[:, :, None]
    longer = np.clip(np.exp(0.55 * steps), SHORTEST, LONGEST) * np.clip(waiting / share, SHORTEST, 1.0)
    beyond = np.maximum(point.whole * longer[:, :, None] * (dispersions - 1.0), 1e-3)
    return np.stack([kind(point.blocks, log_mean, beyond) for kind in (negative_binomial, inverse_gaussian)])


def _above(rate: float, prior: Prior, limits: Floats) -> Floats:
    """A rate, less each of others: relative to it, and where load is low, of logarithms."""
    if prior.most is None or not prior.bursty:
        return np.asarray(rate / limits - 1.0)
    power = np.minimum(1.5 * prior.load(limits), 1.0)
    return np.asarray(((rate / limits) ** power - 1.0) / power)


def _log_prior(prior: Prior, x: Floats, slopes: Floats, away: Floats) -> tuple[Floats, Floats, Floats]:
    """At each rate and slope; the dispersions there, as many as there are ``away``; and how likely each of them is."""
    load = prior.load(np.exp(x))[:, None]
    log_slope = np.log(slope_density(prior, load, np.log(slopes)[None, :]) * rate_density(prior, x)[:, None] + 1e-30)
    longest, sd = bursts(prior, np.exp(x)[:, None], load)
    log_away, width = 0.6 * np.sinh(away), np.cosh(away)
    usual, wide = normal(log_away, 0.0, sd[:, :, None]), normal(log_away, 0.0, 1.2)
    dispersions = 1.0 + (longest * slopes)[:, :, None] * np.exp(log_away)
    return log_slope, dispersions, np.log(((1.0 - DOUBTED) * usual + DOUBTED * wide) * width)


class Ends(NamedTuple):
    """The distances from a rate to its ``lower`` and ``upper`` end, in times of the posterior's, in ln(rate).

    They are of searches that last for at least so many ``answers``, one after the other.
    """

    answers: float
    lower: float
    upper: float


ENDS = (Ends(0.0, 1.98, 1.41), Ends(300.0, 1.0, 1.0), Ends(10_000.0, 1.0, 1.19))
"""Made by ``python -m tests.performance.capacity.family calibrate`` from searches of the set to choose by."""


def ends_for(answers: float) -> Ends:
    """The ends of a search that lasts for so many answers."""
    return next(each for each in reversed(ENDS) if answers >= each.answers)


def calibrated(found: Fit, answers: float) -> Fit:
    """The fit, its interval calibrated."""
    ends, rate, interval = ends_for(answers), found.rate, found.interval
    low, high = rate * (interval.low / rate) ** ends.lower, rate * (interval.high / rate) ** ends.upper
    return replace(found, interval=Interval(low, high))
