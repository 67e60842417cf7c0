"""Values with their errors: means, rates and shares, and percentiles. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inference_benchmarker.summary.statistics.distribution import Distribution


LEAST_BLOCKS = 20


@dataclass(frozen=True, slots=True)
class Ratio:
    """A mean, rate or share: its value, its standard error, from how many blocks, and what it is at least and most.

    ``unseen``: how far a share may be off that was the same in every block, as one of all requests is.
    """

    value: float
    error: float
    blocks: int
    is_lower_bound: bool = False
    most: float = math.inf
    least: float = 0.0
    unseen: float = 0.0

    @property
    def precision(self) -> float:
        """None is lost: its parts were counted one by one."""
        return 0.0

    @property
    def is_constant(self) -> bool:
        """Tells whether it was the same in every block."""
        return not self.error

    @property
    def freedom(self) -> float:
        """Degrees of freedom of its error; 1 also of fewer blocks: a share of all or none has no error to know."""
        return max(self.blocks - 1, 1)

    @property
    def has_error(self) -> bool:
        """Tells whether its blocks are enough to know its error."""
        return self.blocks >= LEAST_BLOCKS

    def ends(self, t: float) -> tuple[float, float]:
        """``t`` standard errors to either side; infinite where the records do not bound it."""
        off = t * self.error or self.unseen
        high = math.inf if self.is_lower_bound else min(self.value + off, self.most)
        return max(self.value - off, self.least), high


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile: its error is that of the share of values at or below it.

    Its ends are the percentiles of the shares that lie so many errors below and above (Woodruff, "Confidence
    intervals for medians and other position measures", JASA 47, 1952).
    """

    distribution: Distribution
    percent: float
    error: float
    blocks: int

    @property
    def value(self) -> float:
        """In seconds."""
        return self.distribution.percentile(self.percent)

    @property
    def is_constant(self) -> bool:
        """Tells whether it was the same in every block."""
        return self.ends(1) == (self.value, self.value)

    @property
    def is_lower_bound(self) -> bool:
        """Tells whether it is the age of an abandoned request."""
        return self.distribution.is_lower_bound(self.value)

    @property
    def most(self) -> float:
        """Nothing bounds a time."""
        return math.inf

    @property
    def least(self) -> float:
        """As ``least_of`` says."""
        return least_of(self.distribution)

    @property
    def precision(self) -> float:
        """The most that it may be off where it was counted, as a share."""
        return self.distribution.precision

    @property
    def freedom(self) -> float:
        """Degrees of freedom of its error."""
        return self.blocks - 1

    @property
    def has_error(self) -> bool:
        """Tells whether its blocks are enough to know its error."""
        return self.blocks >= LEAST_BLOCKS

    def ends(self, t: float) -> tuple[float, float]:
        """The values ``t`` errors of the share to either side; what bounds all where there are no such shares.

        What was counted is wider by its precision, times the root of 2: the change from one run to another is
        the root of the squares of both, and both may be off by all of it, each to its side.
        """
        low, high = (self.percent + 100 * side * t * self.error for side in (-1, 1))
        top = self.distribution.percentile(high) if high < 100 else math.inf
        bounded = not self.distribution.is_lower_bound(top)
        inexact = math.sqrt(2) * self.distribution.precision
        least = self.distribution.percentile(low) if low > 0 else self.least
        high = top * (1 + math.copysign(inexact, top)) if bounded else math.inf
        return least * (1 - math.copysign(inexact, least)), high


Estimate = Ratio | Percentile


def least_of(distribution: Distribution) -> float:
    """The least that such values can be: no time is below 0, and most metrics of the user's own are not."""
    return 0.0 if distribution.minimum >= 0 else -math.inf
