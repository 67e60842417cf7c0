"""The utilisation law: what a request demands of a resource, and the rate at which it is used up to a limit. Pure.

In any stable queue the busy share of a resource is its idle value and the demand of a request times the rate of
completed requests, whatever the order and the spread of arrivals. So a straight line through what was measured at
some rates tells where the limit is, without driving the resource there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.summary.statistics.student_t import student_t
from server_capacity.search.answer import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.columns import Floats

CONFIDENCE = 0.95
SAME_RATE = 0.05
"""Rates that differ by less than this share of the highest one make no line."""

_USUAL_NOISE, _ITS_FREEDOM = 0.02, 2.0
"""Beside the residuals: values are off by about so much of the largest one, and by what the number of requests in it
lets vary where their work does as an exponential time; that is worth so many residuals."""

_BENT, _SURE_BENT = 0.05, 0.99
"""A bend counts where it is that share of the whole rise, and noise makes it so once in a hundred times."""


class Point(NamedTuple):
    """A metric's mean ``value`` over so many ``seconds``, in which ``rate`` requests a second were completed."""

    rate: float
    value: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Line:
    """``value = idle + demand * rate``, as far as it was measured: at rates from ``least`` to ``most``.

    ``noise``: of a point of mean length; ``freedom``: how many values it is known from. ``bent``: the points lie on no
    line, so that it does not hold beyond them. ``centre``, ``weight`` and ``spread``: where the points lie.
    """

    idle: float
    demand: float
    points: tuple[Point, ...]
    noise: float
    freedom: float
    centre: float
    weight: float
    spread: float
    bent: bool

    @property
    def least(self) -> float:
        """The lowest rate that was measured."""
        return min(point.rate for point in self.points)

    @property
    def most(self) -> float:
        """The highest."""
        return max(point.rate for point in self.points)

    def at(self, rate: float) -> float:
        """The value at a rate."""
        return self.idle + self.demand * rate

    def reaches(self, bound: float) -> tuple[float, Interval] | None:
        """The rate at which the line is at ``bound``, with its 95% interval by Fieller's theorem.

        None where the demand cannot be distinguished from none, so that the line may never get there.
        """
        t = student_t(CONFIDENCE, self.freedom)
        unsure = (t * self.noise) ** 2 / (self.demand**2 * self.spread) if self.demand else 1.0
        rate = (bound - self.idle) / self.demand if self.demand else 0.0
        if unsure >= 1 or (rate < 0 and self.demand > 0):
            return None
        away = rate - self.centre
        half = t * self.noise / abs(self.demand) * ((1 - unsure) / self.weight + away**2 / self.spread) ** 0.5
        middle = self.centre + away / (1 - unsure)
        return rate, Interval(max(0.0, middle - half / (1 - unsure)), middle + half / (1 - unsure))


def line_through(points: Sequence[Point]) -> Line | None:
    """The line, by least squares of points weighted by their length; None for points at one rate alone."""
    rates, values = (np.array([point[place] for point in points]) for place in (0, 1))
    if len(points) < 2 or np.ptp(rates) <= SAME_RATE * rates.max():
        return None
    seconds = np.array([point.seconds for point in points])
    weights = seconds / seconds.mean()
    (idle, demand), residuals = _fitted(rates, values, weights, 1)
    requests = max(float(np.median(rates * seconds)), 1.0)
    usual = (_USUAL_NOISE**2 + 1 / requests) ** 0.5 * float(np.abs(values).max())
    freedom = len(points) - 2 + _ITS_FREEDOM
    noise = ((residuals + _ITS_FREEDOM * usual**2) / freedom) ** 0.5
    centre = float(np.average(rates, weights=weights))
    return Line(
        idle=idle,
        demand=demand,
        points=tuple(points),
        noise=noise,
        freedom=freedom,
        centre=centre,
        weight=float(weights.sum()),
        spread=float((weights * (rates - centre) ** 2).sum()),
        bent=_is_bent(rates, values, weights, usual),
    )


def _fitted(rates: Floats, values: Floats, weights: Floats, degree: int) -> tuple[list[float], float]:
    """The coefficients, the constant first, and the weighted sum of squares that they leave."""
    powers = np.vander(rates, degree + 1, increasing=True)
    root = np.sqrt(weights)
    coefficients, *_ = np.linalg.lstsq(powers * root[:, None], values * root, rcond=None)
    left = values - powers @ coefficients
    return coefficients.tolist(), float((weights * left**2).sum())


def _is_bent(rates: Floats, values: Floats, weights: Floats, usual: float) -> bool:
    """Tells whether a parabola fits the points better than noise can, by a bend that matters."""
    if len(rates) < 4:
        return False
    scaled = (rates - rates.min()) / np.ptp(rates)
    (_, slope, bend), residuals = _fitted(scaled, values, weights, 2)
    _, straight = _fitted(scaled, values, weights, 1)
    freedom = len(rates) - 3 + _ITS_FREEDOM
    noise = (residuals + _ITS_FREEDOM * usual**2) / freedom
    rise = abs(slope + bend)
    matters = abs(bend) / 4 > _BENT * max(rise, usual)  # a parabola is so far off its chord in the middle
    return matters and straight - residuals > student_t(_SURE_BENT, freedom) ** 2 * noise
