"""Statistics of a sample of times: exact, or of so many values that they are counted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from inference_benchmarker.records.columns import Floats, Int64

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True)
class Distribution:
    """Statistics of a sample, in seconds. A percentile is the smallest value with that share at or below it.

    Where requests were abandoned, their age stands for a time that would have been longer: every value from
    ``lower_bound_from`` on is a lower bound.

    ``values`` are in order. Without ``ranks`` they are the sample. Else they stand for it: ``ranks[i]`` of the sample
    are at or below the i-th, and each differs from what it stands for by a share of ``precision`` at most.
    """

    count: int
    mean: float
    stdev: float
    lower_bound_from: float | None
    values: Floats = field(repr=False, compare=False)
    ranks: Int64 | None = field(default=None, repr=False, compare=False)
    precision: float = 0.0

    @classmethod
    def of(cls, measured: npt.ArrayLike, abandoned_ages: npt.ArrayLike = ()) -> Distribution | None:
        """The distribution of measured times and of ages that are lower bounds; None when there is nothing."""
        ages = np.asarray(abandoned_ages, np.float64)
        values = np.concatenate((np.asarray(measured, np.float64), ages))
        values.sort()
        if not len(values):
            return None
        bound = float(ages.min()) if len(ages) else None
        return cls(len(values), float(values.mean()), float(values.std()), bound, values)

    def beside(self, other: Distribution) -> Distribution:
        """The distribution of sums if the larger values of both come together: what such a sum is at most, usually."""
        ranks = np.arange(1, self.count + 1) if self.ranks is None else self.ranks
        more = np.array([other.at(math.ceil(rank * other.count / self.count)) for rank in ranks.tolist()])
        bound = None if self.lower_bound_from is None else self.lower_bound_from + float(more.min())
        return replace(self, mean=self.mean + other.mean, lower_bound_from=bound, values=self.values + more)

    def percentile(self, percent: float) -> float:
        """The value at rank ceil(percent / 100 * n)."""
        # 99.9 / 100 * 1000 is 999.0000000000001 in floating point
        return self.at(math.ceil(round(percent * self.count / 100, 9)))

    def at(self, rank: int) -> float:
        """The value at a rank from 1 to n."""
        rank = min(max(rank, 1), self.count)
        return float(self.values[rank - 1 if self.ranks is None else np.searchsorted(self.ranks, rank)])

    def below(self, seconds: float) -> int:
        """The number of values that are less."""
        place = int(np.searchsorted(self.values, seconds))
        return place if self.ranks is None or not place else int(self.ranks[place - 1])

    @property
    def middle(self) -> tuple[float, float]:
        """The two values in the middle, twice the same of an odd number."""
        return self.at((self.count + 1) // 2), self.at(self.count // 2 + 1)

    @property
    def median(self) -> float:
        """The middle value, or the mean of the two in the middle."""
        return sum(self.middle) / 2

    @property
    def minimum(self) -> float:
        """The smallest value."""
        return float(self.values[0])

    @property
    def maximum(self) -> float:
        """The largest value."""
        return float(self.values[-1])

    def statistic(self, name: str) -> float:
        """``mean``, ``min``, ``max`` or a percentile such as ``p99.9``."""
        named = {"mean": self.mean, "min": self.minimum, "max": self.maximum}
        return named[name] if name in named else self.percentile(float(name[1:]))

    def is_lower_bound(self, value: float) -> bool:
        """Tells whether a value of this distribution could in truth be larger."""
        return self.lower_bound_from is not None and value >= self.lower_bound_from


def least_count(percent: float) -> int:
    """The number of values that a percentile needs: of fewer it is simply the largest."""
    return math.ceil(round(100 / (100 - percent), 6))


def percentile_name(percent: float) -> str:
    """``p99`` or ``p99_9``, as in summary.json."""
    return "p" + f"{percent:g}".replace(".", "_")
