"""Distributions of counts that come in bursts: Poisson mixed by a gamma, or by an inverse Gaussian. Pure.

Both are compound Poisson processes, so that blocks of any length agree. Of the second, many bursts are short and a few
very long, as where a queue hovers near a limit; of the first they are more alike. ``beyond`` is the variance over the
mean, less 1. Each gives the log-likelihood of all of a point's blocks, up to what the parameters do not change.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.columns import Floats

_MOST_TABLES = 512
_NODES = np.linspace(-42.0, 20.0, 156)  # of a table over the logarithm of a parameter


def negative_binomial(blocks: Sequence[int], log_mean: Floats, beyond: Floats) -> Floats:
    """Poisson mixed by a gamma of shape mean / beyond."""
    log_shape = log_mean - np.log(beyond)
    over = sum(blocks)
    log_dispersion = np.log1p(beyond)
    likelihood = over * (np.log(beyond) - log_dispersion) - len(blocks) * np.exp(log_shape) * log_dispersion
    if over:
        likelihood = likelihood + _between(log_shape, _rising(tuple(blocks)))
    return np.asarray(likelihood)


@lru_cache(maxsize=_MOST_TABLES)
def _rising(blocks: tuple[int, ...]) -> Floats:
    """The logarithm of the rising factorials of the counts at each node, of all blocks together."""
    counts = np.array([count for count in blocks if count])[:, None]
    shapes = np.exp(_NODES)
    return np.asarray((_log_gamma(counts + shapes) - _log_gamma(shapes)).sum(axis=0))


def inverse_gaussian(blocks: Sequence[int], log_mean: Floats, beyond: Floats) -> Floats:
    """Poisson mixed by an inverse Gaussian of variance mean x beyond."""
    root = np.sqrt(1.0 + 2.0 * beyond)
    shape = np.exp(log_mean) / beyond
    counts = [count for count in blocks if count]
    likelihood = (
        len(blocks) * shape - (len(blocks) - len(counts)) * shape * root + sum(counts) * (log_mean - np.log(root))
    )
    if counts:
        middle = float(np.mean(counts))
        argument = shape * root
        likelihood = likelihood + _between(np.log(argument), _bent(tuple(blocks)))
        likelihood += 0.5 * len(counts) * np.log(argument * 2 / math.pi) - len(counts) * np.hypot(middle, argument)
    return np.asarray(likelihood)


@lru_cache(maxsize=_MOST_TABLES)
def _bent(blocks: tuple[int, ...]) -> Floats:
    """The logarithm of the Bessel functions of the counts at each node, of all blocks together.

    The table is of what is left of a hyperbola, because its steep part would not bear being interpolated.
    """
    counts = [count for count in blocks if count]
    bent = len(counts) * np.hypot(float(np.mean(counts)), np.exp(_NODES))
    return np.asarray(sum(_log_bessel(count, np.exp(_NODES)) for count in counts) + bent)


def _between(value: Floats, table: Floats) -> Floats:
    """A table over the nodes, at values between them, by cubics whose slopes are of the fourth order.

    Of many requests a straight line is out by a two-hundredth of their number, which is more than they can show.
    """
    place = np.clip((value - _NODES[0]) / (_NODES[1] - _NODES[0]), 2.0, len(_NODES) - 3.001)
    left = place.astype(np.intp)
    part = place - left
    slopes = np.zeros_like(table)
    slopes[2:-2] = (8.0 * (table[3:-1] - table[1:-3]) - table[4:] + table[:-4]) / 12.0
    here, step = table[left], (table[1:] - table[:-1])[left]
    bend, end = (slopes[:-1] - np.diff(table))[left], (np.diff(table) - slopes[1:])[left]
    return np.asarray(here + part * (step + (1.0 - part) * (bend * (1.0 - part) + end * part)))


def _log_bessel(count: int, x: Floats) -> Floats:
    """The logarithm of the Bessel function K of order ``count`` - 1/2 at x, by the uniform expansion, exact up to 1."""
    if count <= 1:
        return np.asarray(0.5 * np.log(math.pi / (2.0 * x)) - x)
    order = count - 0.5
    ratio = x / order
    root = np.sqrt(1.0 + ratio * ratio)
    cosine = 1.0 / root
    first = -(3.0 * cosine - 5.0 * cosine**3) / (24.0 * order)
    second = (81.0 * cosine**2 - 462.0 * cosine**4 + 385.0 * cosine**6) / (1152.0 * order**2)
    exponent = order * (root + np.log(ratio / (1.0 + root)))
    return np.asarray(0.5 * np.log(math.pi / (2.0 * order * root)) - exponent + np.log1p(first + second))


def _log_gamma(x: Floats) -> Floats:
    """By Stirling's series at x + 8, good to 1e-9 for x > 0."""
    far = x + 8.0
    series = (far - 0.5) * np.log(far) - far + 0.5 * math.log(2 * math.pi) + 1 / (12 * far) - 1 / (360 * far**3)
    return np.asarray(series - sum(np.log(x + step) for step in range(8)))
