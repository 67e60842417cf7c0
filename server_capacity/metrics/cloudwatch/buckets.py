"""Which buckets of a stream belong to a wave, and how their values become one number. Pure.

A bucket is named by its start (unix seconds) and lasts one period. Counters are read from the buckets that cover
the wave, gauges from those that lie wholly inside it, because idle time dilutes a gauge at the edges. What cannot be
computed from several buckets (percentiles, trimmed means) is asked for as one bucket over all of it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SUB_MINUTE_PERIODS = (1, 5, 10, 20, 30)
MINUTE = 60
LONGEST_PERIOD = 86_400

Combination = Literal["add", "maximum", "minimum", "weighted", "none"]

_STATISTIC = re.compile(
    r"(?:SampleCount|Average|Sum|Minimum|Maximum|IQM"
    r"|(?:p|tm|wm|tc|ts)(?P<share>\d{1,3}(?:\.\d{1,10})?)"
    r"|(?P<range>TM|WM|PR|TC|TS)\((?P<low>[^:()]*):(?P<high>[^:()]*)\))"
)
_BOUND = re.compile(r"\d+(?:\.\d+)?%?")
_COMBINATIONS: dict[str, Combination] = {
    "Sum": "add",
    "SampleCount": "add",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Average": "weighted",
}


@dataclass(frozen=True, slots=True)
class Span:
    """Whole buckets from ``start`` (included) to ``end`` (not included), in unix seconds."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Seconds."""
        return self.end - self.start

    def __contains__(self, bucket: int) -> bool:
        return self.start <= bucket < self.end


def is_period(seconds: int) -> bool:
    """Tells whether CloudWatch has buckets of this length: 1, 5, 10, 20, 30 or a multiple of 60 up to a day."""
    return seconds in SUB_MINUTE_PERIODS or (0 < seconds <= LONGEST_PERIOD and seconds % MINUTE == 0)


def is_statistic(text: str) -> bool:
    """Tells whether CloudWatch can read this statistic: p99.9, TM(2%:98%), PR(:300) and the five plain ones."""
    match = _STATISTIC.fullmatch(text)
    if match is None:
        return False
    if match["share"] is not None:
        return float(match["share"]) <= 100
    if match["range"] is None:
        return True
    bounds = [bound for bound in (match["low"], match["high"]) if bound]
    return bool(bounds) and all(_BOUND.fullmatch(bound) for bound in bounds)


def combination(statistic: str) -> Combination:
    """The way in which several buckets' values become one; "none": they cannot, a percentile is no average."""
    if statistic in _COMBINATIONS:
        return _COMBINATIONS[statistic]
    absolute = "(" in statistic and "%" not in statistic
    if absolute and statistic.startswith("PR"):
        return "weighted"
    return "add" if absolute and statistic.startswith(("TC", "TS")) else "none"


def needs(statistic: str) -> tuple[str, ...]:
    """The series, a value a bucket, from which ``combine`` computes it; none where one bucket must hold it all."""
    how = combination(statistic)
    if how == "none":
        return ()
    return (statistic, "SampleCount") if how == "weighted" else (statistic,)


def combine(statistic: str, series: Mapping[str, Mapping[int, float]], span: Span) -> float | None:
    """The statistic over every bucket of the span, None where no bucket has it.

    Averages and shares are weighted by SampleCount; a bucket without a count cannot be weighed and makes it None.
    """
    values = within(series.get(statistic, {}), span)
    if not values:
        return None
    how = combination(statistic)
    if how == "weighted":
        return _weighted(values, series.get("SampleCount", {}))
    if how == "add":
        return math.fsum(values.values())
    if how in ("maximum", "minimum"):
        return max(values.values()) if how == "maximum" else min(values.values())
    return next(iter(values.values())) if len(values) == 1 else None


def within(series: Mapping[int, float], span: Span) -> dict[int, float]:
    """The part of a series that lies in the span, in order of time."""
    return {bucket: series[bucket] for bucket in sorted(series) if bucket in span}


def covering(start: float, end: float, period: int) -> Span:
    """Every bucket that shares a moment with [start, end]: the window of counters. Never empty."""
    first = _floor(start, period)
    return Span(first, max(_ceil(end, period), first + period))


def inner(start: float, end: float, period: int) -> Span | None:
    """The buckets wholly inside [start, end]: the window of gauges; None where there is none."""
    first, last = _ceil(start, period), _floor(end, period)
    return Span(first, last) if last > first else None


def one_bucket(span: Span) -> Span | None:
    """The shortest single bucket that holds the span, from a start that CloudWatch does not round; None over a day."""
    for period in SUB_MINUTE_PERIODS:
        first = _floor(span.start, period)
        if first + period >= span.end:
            return Span(first, first + period)
    first = _floor(span.start, MINUTE)
    length = _ceil(span.end - first, MINUTE)
    return Span(first, first + length) if length <= LONGEST_PERIOD else None


def changes(counts: Iterable[float]) -> list[float]:
    """The values in order, repetitions left out: one value, nothing changed."""
    seen: list[float] = []
    for count in counts:
        if not seen or count != seen[-1]:
            seen.append(count)
    return seen


def _weighted(values: Mapping[int, float], counts: Mapping[int, float]) -> float | None:
    if any(bucket not in counts for bucket in values):
        return None
    total = math.fsum(counts[bucket] for bucket in values)
    return math.fsum(values[bucket] * counts[bucket] for bucket in values) / total if total else None


def _floor(moment: float, period: int) -> int:
    return math.floor(moment / period) * period


def _ceil(moment: float, period: int) -> int:
    return math.ceil(moment / period) * period
