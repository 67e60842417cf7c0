"""A metric of several runs of one thing: what runs of it differ by is a part of its error. Pure.

Waves differ by more than their seconds say: another process, another placement, another moment of the machine. So
where a side has several runs, each of them is one value, and the error of their mean is that of a sample of so many.
What the blocks within the runs say is the least that it can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, variance
from typing import TYPE_CHECKING

from visualization.comparison.estimates import Ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from visualization.comparison.estimates import Estimate

LEAST_RUNS = 2
_MOST_LOGARITHM = math.log(1000)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A metric over several runs of one side, each of which counts as much as another.

    The mean is that of logarithms (``logarithmic``), so that a run at twice the value and one at half of it even out;
    where a value is 0 it is that of the values. ``error`` is the mean's standard error on the same scale, with so many
    degrees of ``freedom``; with 0 of these the error is unknown. ``precision``: how far off each value may be that was
    counted. ``unseen``: as of a ``Ratio``.
    """

    value: float
    error: float
    freedom: float
    runs: int
    logarithmic: bool = True
    is_lower_bound: bool = False
    precision: float = 0.0
    most: float = math.inf
    least: float = 0.0
    unseen: float = 0.0

    @property
    def is_constant(self) -> bool:
        """Tells whether it was the same all along."""
        return not (self.error or self.precision)

    @property
    def has_error(self) -> bool:
        """Tells whether its error is known."""
        return self.freedom >= 1

    def ends(self, t: float) -> tuple[float, float]:
        """``t`` standard errors to either side; infinite where the records of a run do not bound it."""
        if not self.error:
            low, high = self.value - self.unseen, self.value + self.unseen
        elif self.logarithmic:
            low, high = self.value * math.exp(-t * self.error), self.value * factor(t * self.error)
        else:
            low, high = self.value - t * self.error, self.value + t * self.error
        inexact = math.sqrt(2) * self.precision
        high = math.inf if self.is_lower_bound else min(high * (1 + math.copysign(inexact, high)), self.most)
        return max(low * (1 - math.copysign(inexact, low)), self.least), high


def factor(logarithm: float) -> float:
    """The factor with the logarithm of an error; what may be off by more than a thousandfold is not known at all."""
    return math.exp(logarithm) if logarithm < _MOST_LOGARITHM else math.inf


def over_runs(
    base: Sequence[Estimate | None], new: Sequence[Estimate | None]
) -> tuple[Estimate | Repeated | None, Estimate | Repeated | None]:
    """The metric of both sides, from its estimates in their runs; None where any run of a side has none.

    Of two single runs nobody knows how far runs lie apart: their blocks are all there is. A single run beside several
    is taken to scatter as those do.
    """
    if max(len(base), len(new)) < LEAST_RUNS:
        return base[0], new[0]
    before, after = _measured(base), _measured(new)
    logarithmic = all(run.value > 0 for run in (*before, *after))
    first, second = (_between(side, logarithmic=logarithmic) for side in (before, after))
    return (
        _side(before, first if first[1] else second, logarithmic=logarithmic),
        _side(after, second if second[1] else first, logarithmic=logarithmic),
    )


def over_side(runs: Sequence[Estimate | None]) -> Estimate | Repeated | None:
    """The metric of one side alone."""
    return over_runs(runs, runs)[0]


def _measured(side: Sequence[Estimate | None]) -> list[Estimate]:
    found = [run for run in side if run is not None]
    return found if len(found) == len(side) else []


def _between(side: Sequence[Estimate], *, logarithmic: bool) -> tuple[float, int]:
    """The variance of one run's value among the runs, and its degrees of freedom."""
    if len(side) < LEAST_RUNS:
        return 0.0, 0
    return variance([_scaled(run.value, logarithmic=logarithmic) for run in side]), len(side) - 1


def _side(side: Sequence[Estimate], scatter: tuple[float, int], *, logarithmic: bool) -> Repeated | None:
    if not side:
        return None
    (between, freedom), runs = scatter, len(side)
    within = sum(_within(run, logarithmic=logarithmic) ** 2 for run in side) / runs
    mean = fmean(_scaled(run.value, logarithmic=logarithmic) for run in side)
    return Repeated(
        value=math.exp(mean) if logarithmic else mean,
        error=math.sqrt(max(between, within) / runs),
        freedom=freedom,
        runs=runs,
        logarithmic=logarithmic,
        is_lower_bound=any(run.is_lower_bound for run in side),
        precision=max(run.precision for run in side),
        most=min(run.most for run in side),
        least=min(run.least for run in side),
        unseen=_unseen(side),
    )


def _unseen(side: Sequence[Estimate]) -> float:
    """That of all their requests together."""
    each = [run.unseen for run in side if isinstance(run, Ratio) and run.unseen]
    return 1 / sum(1 / unseen for unseen in each) if each else 0.0


def _scaled(value: float, *, logarithmic: bool) -> float:
    return math.log(value) if logarithmic else value


def _within(run: Estimate, *, logarithmic: bool) -> float:
    """The standard error of one run's value by its blocks; 0 where they show none."""
    low, high = run.ends(1)
    if run.blocks < LEAST_RUNS or run.is_constant or math.isinf(high) or (logarithmic and low <= 0):
        return 0.0
    return (_scaled(high, logarithmic=logarithmic) - _scaled(low, logarithmic=logarithmic)) / 2
