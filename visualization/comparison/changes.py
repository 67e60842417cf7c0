"""The change of a metric from one side of a comparison to the other, and how sure it is. Pure.

A change is ``new / base - 1``. docs/reference/metrics.md, "Comparison", is this module in words.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.summary.statistics.student_t import student_t
from visualization.comparison.estimates import Percentile, Ratio
from visualization.comparison.intervals import CONFIDENCE
from visualization.comparison.repeats import LEAST_RUNS, Repeated, factor

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Value = Ratio | Percentile | Repeated
Outcome = Literal["improved", "unchanged", "worse", "cannot tell", "asked for"]

LEAST_CHANGE, WIDEST = 0.03, 0.10
LEAST_SUCCESS_CHANGE, WIDEST_SUCCESS = 0.003, 0.01  # 2 more failures in 100 are no small change
HIGHER_IS_BETTER = ("rate", "success", "tokens", "session.success")
PRIMARY_SHARE, PRIMARY_SHARE_OF_SEVERAL = 0.5, 0.8
"""Of the 5% of comparisons of equal things that may seem to have changed in anything: what the primary rows have.

Of a few runs a side a lower level costs far more than of many seconds: there they have more of it.
"""


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric of both sides; None where it was not measured. ``low`` to ``high`` is the change's interval.

    ``primary``: what the first line is about. ``asked_for``: the sides differ in it because they were to.
    """

    metric: str
    stat: str
    base: Value | None
    new: Value | None
    low: float | None = None
    high: float | None = None
    least: float = LEAST_CHANGE
    primary: bool = False
    asked_for: bool = False

    @property
    def name(self) -> str:
        """As in a limit: ``latency.p99``, ``success``."""
        return self.metric if self.metric == self.stat else f"{self.metric}.{self.stat}"

    @property
    def measured(self) -> bool:
        """Tells whether both sides have it."""
        return self.base is not None and self.new is not None

    @property
    def change(self) -> float | None:
        """As ``ratio`` says."""
        if self.base is None or self.new is None:
            return None
        return ratio(self.base.value, self.new.value)

    @property
    def regression(self) -> float | None:
        """The change counted so that worse is more."""
        change = self.change
        return -change if change is not None and self.metric in HIGHER_IS_BETTER else change

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval counted so that worse is more."""
        if self.low is None or self.high is None:
            return None
        return (-self.high, -self.low) if self.metric in HIGHER_IS_BETTER else (self.low, self.high)

    @property
    def significant(self) -> bool:
        """Tells whether the interval excludes no change."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    @property
    def outcome(self) -> Outcome:
        """Changed: significantly, by the least change or more. Unchanged: not so, and the widest change is excluded."""
        if self.asked_for:
            return "asked for"
        regression = self.regression
        if regression is None or self.low is None or self.high is None:
            return "cannot tell"
        if self.significant and abs(regression) >= self.least:
            return "worse" if regression > 0 else "improved"
        widest = WIDEST_SUCCESS if is_success(self.metric) else WIDEST
        return "unchanged" if -widest < self.low and self.high < widest else "cannot tell"


def is_success(metric: str) -> bool:
    """Tells whether a metric is the share of requests, or of sessions, that succeed."""
    return metric in ("success", "session.success")


def with_intervals(rows: Sequence[MetricChange]) -> list[MetricChange]:
    """The rows with intervals of their change, corrected for how many are tested.

    Holm's procedure with weights (Scandinavian Journal of Statistics 6, 1979) in steps: of those that are left, whose
    weights add up to w, each whose interval at 1 - 0.05 * its weight / w excludes no change is significant and leaves.
    Each row keeps the interval of the step it left or stayed at, so that it excludes 0 just where the change is
    significant.
    """
    tested = [row for row in rows if _testable(row)]
    done = {row.name: with_interval(row, CONFIDENCE) for row in rows if _is_opposite(row)}
    done |= {row.name: with_interval(row, CONFIDENCE) for row in tested if _is_constant(row)}
    left = {row.name: row for row in tested if row.name not in done}
    weights = _weights(left.values())
    while left:
        total = sum(weights[name] for name in left)
        drawn = {name: with_interval(row, 1 - (1 - CONFIDENCE) * weights[name] / total) for name, row in left.items()}
        found = {name: row for name, row in drawn.items() if row.significant}
        done |= found or drawn
        left = {name: row for name, row in left.items() if found and name not in found}
    return [done.get(row.name, row) for row in rows]


def _weights(rows: Collection[MetricChange]) -> dict[str, float]:
    """The weight of each row by its name: the primary ones share half of it, of several runs a side four fifths."""
    several = Counter(row.primary for row in rows)
    of_runs = any(isinstance(row.base, Repeated) for row in rows)
    share = PRIMARY_SHARE_OF_SEVERAL if of_runs else PRIMARY_SHARE
    shares = {True: share, False: 1 - share}
    return {row.name: shares[row.primary] / several[row.primary] for row in rows}


def _is_constant(row: MetricChange) -> bool:
    """Tells whether it was the same all along, as a success rate of 100%: such a row can never seem to have changed."""
    base, new = row.base, row.new
    assert base is not None
    assert new is not None
    return base.value == new.value and base.is_constant and new.is_constant


def _is_opposite(row: MetricChange) -> bool:
    """Tells whether all requests of one side succeeded and none of the other's: too few seconds leave that not open."""
    values = {value.value for value in (row.base, row.new) if isinstance(value, Ratio)}
    return is_success(row.metric) and values == {0.0, 1.0}


def _testable(row: MetricChange) -> bool:
    enough = all(run is not None and run.has_error for run in (row.base, row.new))
    return enough and row.change is not None


def with_interval(row: MetricChange, confidence: float) -> MetricChange:
    """The row with the interval of its change, from those of the two values.

    The two are put together as logarithms: each end of the difference is as far from it as the square root of the
    sum of squares of the distances to the ends that move it there (Zou and Donner, "Construction of confidence
    limits about effect measures", Statistics in Medicine 27, 2008).
    """
    base, new = row.base, row.new
    assert base is not None
    assert new is not None
    t = student_t(confidence, _freedom(base, new))
    (base_low, base_high), (new_low, new_high) = base.ends(t), new.ends(t)
    if base.value <= 0 or new.value <= 0:  # has no logarithm: the furthest that the ends allow
        return replace(row, low=_far(new_low, base_high), high=_far(new_high, base_low))
    difference = math.log(new.value / base.value)
    down = math.hypot(_log(new.value, new_low), _log(base_high, base.value))
    up = math.hypot(_log(new_high, new.value), _log(base.value, base_low))
    return replace(row, low=math.exp(difference) / factor(down) - 1, high=math.exp(difference) * factor(up) - 1)


def _freedom(base: Value, new: Value) -> float:
    """Of two values with errors of their own (Welch, Biometrika 34, 1947); errors as shares of the value."""
    squares = [_relative_error(run) ** 2 for run in (base, new)]
    freedoms = [run.freedom for run in (base, new)]
    total = sum(squares)
    borrowed = any(isinstance(run, Repeated) and run.runs < LEAST_RUNS for run in (base, new))
    if not total or math.isinf(total) or borrowed:  # an error that both sides have is known no better for that
        return min(freedoms)
    return total**2 / sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))


def _relative_error(run: Value) -> float:
    low, high = run.ends(1)
    return (high - low) / 2 / run.value if run.value else 0.0


def _log(above: float, below: float) -> float:
    return math.log(above / below) if below else math.inf


def _far(above: float, below: float) -> float:
    """A change's end from the ends of the values; what they do not bound is 0 or infinite."""
    if above <= 0:
        return -1.0 if below else 0.0
    return above / below - 1 if below else math.inf


def ratio(base: float, new: float) -> float | None:
    """New / base - 1; None where there is no base to divide by, or as good as none."""
    if base > 0:
        change = new / base - 1
        return change if math.isfinite(change) else None
    return 0.0 if base == new else None


TIMES = ("latency", "response_time", "ttft", "itl")
