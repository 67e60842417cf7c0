"""The number of users at which a share crosses what is allowed: a posterior from counts that come in bursts. Pure.

The odds to be over are a power of the number of users near the crossing: so they are, within some per cent up to shares
of a half, in a closed queue of exponential servers and think times. Counts have ``dispersion`` times the variance of
independent requests, as their residuals show (quasi-likelihood: Wedderburn, Biometrika 61, 1974).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.summary.statistics.student_t import student_t
from server_capacity.search.answer import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from server_capacity.search.blocks import UsersBlock

    Floats = npt.NDArray[np.float64]

REACH, PLACES = 0.5, 201
SLOPES = np.geomspace(1.5, 80.0, 24)
SLOPE, SLOPE_SPREAD = math.log(18.0), 0.7
USUAL_DISPERSION, USUAL_WEIGHT = 6.0, 6.0
"""The dispersion before anything is known, and the number of blocks that it counts for."""
JOINED = (1, 2, 4)
"""Bursts may reach from block to block, so the dispersion is also that of so many blocks joined, and of all in a row.

The largest one counts, as in the blocking method (Flyvbjerg and Petersen, J. Chem. Phys. 91, 1989).
"""
WIDER = (1.65, 1.65)
"""By what bursts still hide, an interval is wider below and above: found on simulated searches."""
_LEAST_ALLOWED = 1e-6
_MOST = 600.0  # exponents beyond it overflow


@dataclass(frozen=True, slots=True)
class Crossing:
    """``at``: the posterior's median, users; ``interval``: 95% of it. ``slope``: d ln(share) / d ln(users)."""

    at: float
    interval: Interval
    slope: float
    dispersion: float


def crossing(
    blocks: Sequence[UsersBlock],
    allowed: float,
    centre: float,
    slope_spread: float = SLOPE_SPREAD,
    wider: tuple[float, float] = WIDER,
) -> Crossing:
    """The crossing within a factor of exp(0.5) of ``centre``. Blocks are in order of time."""
    x = math.log(centre) + np.linspace(-REACH, REACH, PLACES)
    users = np.array([block.users for block in blocks])
    of, over = (np.array([getattr(block, name) for block in blocks], float) for name in ("of", "over"))
    expected = of * _share(np.log(users) - x[:, None, None], SLOPES[None, :, None], allowed)
    likely = (over * np.log(np.maximum(expected, 1e-300)) - expected).sum(axis=2)
    prior = -0.5 * ((np.log(SLOPES) - SLOPE) / slope_spread) ** 2
    best = np.unravel_index(np.argmax(likely + prior), likely.shape)
    dispersion, number = _dispersion(blocks, expected[best])
    density = np.exp(likely / dispersion + prior - (likely / dispersion + prior).max())
    of_place, of_slope = density.sum(axis=1), density.sum(axis=0)
    beyond = np.concatenate([[0.0], np.cumsum(of_place) / of_place.sum()])
    half = (x[1] - x[0]) / 2
    low, middle, high = np.interp([0.025, 0.5, 0.975], beyond, np.append(x - half, x[-1] + half))
    below, above = (each * student_t(0.95, USUAL_WEIGHT + max(number - 2, 0)) / 1.96 for each in wider)
    return Crossing(
        at=math.exp(middle),
        interval=Interval(math.exp(middle - below * (middle - low)), math.exp(middle + above * (high - middle))),
        slope=math.exp(float(of_slope @ np.log(SLOPES)) / of_slope.sum()),
        dispersion=dispersion,
    )


def _share(away: Floats, slopes: Floats, allowed: float) -> Floats:
    """The share over at ``away`` = ln(users / crossing)."""
    odds_against = (1.0 - allowed) / max(allowed, _LEAST_ALLOWED)
    return np.asarray(1.0 / (1.0 + odds_against * np.exp(-np.clip(slopes * away, -_MOST, _MOST))))


def _dispersion(blocks: Sequence[UsersBlock], expected: Floats) -> tuple[float, int]:
    """The largest of blocks joined by several numbers, and how many such there are."""
    pairs = [(block.users, float(block.over), float(some)) for block, some in zip(blocks, expected, strict=True)]
    runs = [list(run) for _, run in groupby(pairs, key=lambda pair: pair[0])]
    return max(_dispersion_of(_joined(runs, times)) for times in (*JOINED, len(pairs)))


def _joined(runs: Sequence[Sequence[tuple[float, float, float]]], times: int) -> Floats:
    """The counts over the limit and those expected, of so many blocks in a row of the same users: shape (parts, 2)."""
    parts = (run[begin : begin + times] for run in runs for begin in range(0, len(run), times))
    return np.array([[sum(over for _, over, _ in part), sum(some for *_, some in part)] for part in parts])


def _dispersion_of(parts: Floats) -> tuple[float, int]:
    """Squared residuals over what independent requests would have; a part that expects little is weighted little."""
    over, expected = parts.T
    residuals, number = float(((over - expected) ** 2).sum()) / max(float(expected.sum()), 1e-9), len(parts)
    weighted = USUAL_WEIGHT * USUAL_DISPERSION + number * residuals
    return max(1.0, weighted / (USUAL_WEIGHT + max(number - 2, 1))), number
