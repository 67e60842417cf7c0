"""CloudWatch's statistics, computed from every raw value: what they are called and what they mean.

Lower bounds are exclusive and upper ones inclusive. A percentile is the smallest value that at least that share of
the samples does not exceed (nearest rank); a trimmed range in percent takes the part of a value's samples that
lies inside. A statistic that needs raw values is None where only their summary is known.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SHORT = re.compile(r"(p|tm|wm|tc|ts)(\d{1,3}(?:\.\d{1,10})?)")
_LONG = re.compile(r"(TM|WM|TC|TS|PR)\(([^:()]*):([^:()]*)\)")


@dataclass(frozen=True)
class Samples:
    """The samples of one bucket. ``values``: how often each value occurred; None where only the summary is known."""

    count: float
    total: float
    low: float
    high: float
    values: Mapping[float, float] | None

    @cached_property
    def ordered(self) -> list[tuple[float, float]]:
        """(value, how often), in the order of the values."""
        return sorted((self.values or {}).items())

    @cached_property
    def ranks(self) -> list[float]:
        """The number of samples that are at most each value of ``ordered``."""
        return list(accumulate(weight for _, weight in self.ordered))

    def percentile(self, share: float) -> float:
        """The value at a share (0 to 1) of all samples."""
        place = bisect_left(self.ranks, share * self.ranks[-1] * (1 - 1e-12))
        return self.ordered[min(place, len(self.ordered) - 1)][0]


class Range(NamedTuple):
    """The range that a trimmed statistic keeps: (low, high], in values or as shares of the samples."""

    low: float
    high: float
    shares: bool

    def kept(self, samples: Samples) -> list[tuple[float, float]]:
        """(value, how many of its samples are inside)."""
        if not self.shares:
            return [(value, weight) for value, weight in samples.ordered if self.low < value <= self.high]
        low, high = self.low * samples.ranks[-1], self.high * samples.ranks[-1]
        inside = (
            (value, min(rank, high) - max(rank - weight, low))
            for (value, weight), rank in zip(samples.ordered, samples.ranks, strict=True)
        )
        return [(value, weight) for value, weight in inside if weight > 0]

    def bounds(self, samples: Samples) -> tuple[float, float]:
        """The range in values."""
        if not self.shares:
            return self.low, self.high
        return samples.percentile(self.low), samples.percentile(self.high)


def parse_statistic(text: str) -> Callable[[Samples], float | None]:
    """The statistic of that name. Raises ValueError where CloudWatch knows none."""
    if text in _BASIC:
        return _BASIC[text]
    if text == "IQM":
        return _of_values("tm", Range(0.25, 0.75, shares=True))
    if short := _SHORT.fullmatch(text):
        share = float(short[2]) / 100
        if share <= 1:
            return _percentile(share) if short[1] == "p" else _of_values(short[1], Range(0, share, shares=True))
    elif long := _LONG.fullmatch(text):
        return _of_values(long[1].lower(), _range(long[1], long[2], long[3]))
    raise ValueError(f"{text!r} is not a CloudWatch statistic")


def _range(kind: str, low: str, high: str) -> Range:
    given = [text for text in (low, high) if text]
    shares = any(text.endswith("%") for text in given)
    if not given or (shares and kind == "PR") or (shares and not all(text.endswith("%") for text in given)):
        raise ValueError(f"{kind}({low}:{high}) is not a CloudWatch statistic")
    if shares:
        return Range(float(low[:-1] or 0) / 100, float(high[:-1] or 100) / 100, shares=True)
    return Range(float(low or "-inf"), float(high or "inf"), shares=False)


def _percentile(share: float) -> Callable[[Samples], float | None]:
    return lambda samples: samples.percentile(share) if samples.values else None


def _of_values(kind: str, part: Range) -> Callable[[Samples], float | None]:
    compute = _TRIMMED[kind]
    return lambda samples: compute(samples, part) if samples.values else None


def _trimmed_mean(samples: Samples, part: Range) -> float | None:
    count = _trimmed_count(samples, part)
    return _trimmed_sum(samples, part) / count if count else None


def _trimmed_count(samples: Samples, part: Range) -> float:
    return sum(weight for _, weight in part.kept(samples))


def _trimmed_sum(samples: Samples, part: Range) -> float:
    return sum(value * weight for value, weight in part.kept(samples))


def _winsorized_mean(samples: Samples, part: Range) -> float | None:
    low, high = part.bounds(samples)
    return sum(min(max(value, low), high) * weight for value, weight in samples.ordered) / samples.ranks[-1]


def _percentile_rank(samples: Samples, part: Range) -> float:
    return 100 * _trimmed_count(samples, part) / samples.ranks[-1]


_BASIC: dict[str, Callable[[Samples], float | None]] = {
    "SampleCount": lambda samples: samples.count,
    "Sum": lambda samples: samples.total,
    "Minimum": lambda samples: samples.low,
    "Maximum": lambda samples: samples.high,
    "Average": lambda samples: samples.total / samples.count if samples.count else None,
}
_TRIMMED: dict[str, Callable[[Samples, Range], float | None]] = {
    "tm": _trimmed_mean,
    "tc": _trimmed_count,
    "ts": _trimmed_sum,
    "wm": _winsorized_mean,
    "pr": _percentile_rank,
}
