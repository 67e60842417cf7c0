"""Holds a run against an earlier one: what changed, what did not, and what the records cannot tell. Pure.

A change is ``new / base - 1``. docs/reference/metrics.md, "Comparison", is this module in words.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.facts.server_metric import SIGNS
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.summary.student_t import student_t
from visualization.intervals import CONFIDENCE, LEAST_BLOCKS, Estimate, Estimates
from visualization.user_rows import user_metrics_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.plan.slo import MaxRegression
    from inference_benchmarker.wave.wave import Wave

Outcome = Literal["improved", "unchanged", "worse", "cannot tell"]

LEAST_CHANGE, WIDEST = 0.03, 0.10
LEAST_SUCCESS_CHANGE, WIDEST_SUCCESS = 0.003, 0.01  # 2 more failures in 100 are no small change
_ALONE = ("rate", "success")
_STATS = ("mean", "p50", "p90", "p95", "p99")
_METRICS = (
    *((name, name) for name in _ALONE),
    *((metric, stat) for metric in ("latency", "response_time", "ttft", "itl") for stat in _STATS),
    ("tokens", "tokens"),
    ("lag", "p50"),
    ("lag", "p99"),
)
_HIGHER_IS_BETTER = ("rate", "success", "tokens")


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of both runs; None where it was not measured. ``low`` to ``high`` is the change's interval."""

    metric: str
    stat: str
    base: Estimate | None
    new: Estimate | None
    low: float | None = None
    high: float | None = None
    least: float = LEAST_CHANGE

    @property
    def name(self) -> str:
        """As in a limit: ``latency.p99``, ``success``."""
        return self.metric if self.metric == self.stat else f"{self.metric}.{self.stat}"

    @property
    def measured(self) -> bool:
        """Tells whether both runs have it."""
        return self.base is not None and self.new is not None

    @property
    def change(self) -> float | None:
        """New / base - 1; None where there is no base to divide by."""
        if self.base is None or self.new is None:
            return None
        return _ratio(self.base.value, self.new.value)

    @property
    def regression(self) -> float | None:
        """The change counted so that worse is more."""
        change = self.change
        return -change if change is not None and self.metric in _HIGHER_IS_BETTER else change

    @property
    def significant(self) -> bool:
        """Tells whether the interval excludes no change."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    @property
    def outcome(self) -> Outcome:
        """Changed: significantly, by the least change or more. Unchanged: not so, and the widest change is excluded."""
        regression = self.regression
        if regression is None or self.low is None or self.high is None:
            return "cannot tell"
        if self.significant and abs(regression) >= self.least:
            return "worse" if regression > 0 else "improved"
        widest = WIDEST_SUCCESS if self.metric == "success" else WIDEST
        return "unchanged" if -widest < self.low and self.high < widest else "cannot tell"


@dataclass(frozen=True, slots=True)
class Check:
    """A limit on a regression, held against its row."""

    limit: MaxRegression
    row: Row

    @property
    def broken(self) -> bool:
        """The regression is above the limit and significant; or there is nothing to hold against it."""
        regression = self.row.regression
        if regression is None:  # not measured, or more than none: an improvement where higher is better
            return not (self.row.measured and self.row.metric in _HIGHER_IS_BETTER)
        return regression > self.limit.most and self.row.outcome == "worse"

    @property
    def undecided(self) -> bool:
        """Not broken, but the records do not tell whether the metric changed."""
        return not self.broken and self.row.outcome == "cannot tell"


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A statistic of a server metric that both runs have: two values without records behind them."""

    name: str
    base: float
    new: float
    unit: str | None = None
    signs: tuple[str, str] = ("", "")
    """≥ or ≤ before a value that is only a bound."""

    @property
    def change(self) -> float | None:
        """New / base - 1; of bounds there is none."""
        return None if any(self.signs) else _ratio(self.base, self.new)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side; ``unlike`` says in what their plans differ.

    ``own``: metrics of the user's own. Nobody knows whether more of one is better, so that they have no outcome.
    """

    base: Wave
    new: Wave
    rows: tuple[Row, ...]
    server_rows: tuple[ServerRow, ...]
    checks: tuple[Check, ...]
    unlike: tuple[str, ...]
    own: tuple[Row, ...] = ()

    @property
    def of_one_run(self) -> bool:
        """Tells whether both are the same run directory."""
        base, new = self.base.run_dir, self.new.run_dir
        return base is not None and new is not None and base.path.resolve() == new.path.resolve()

    @property
    def outcome(self) -> Literal["invalid", "failed", "passed"]:
        """Tells whether either run is INVALID, else whether a limit is broken."""
        if not (self.base.verdict.valid and self.new.verdict.valid):
            return "invalid"
        return "failed" if any(check.broken for check in self.checks) else "passed"


def compare(base: Wave, new: Wave, limits: Sequence[MaxRegression] = ()) -> Comparison:
    """Hold ``new`` against ``base``: the metrics that either has, those of the limits among them."""
    open_loop = base.open_loop and new.open_loop
    wanted = {limit: _named(limit, open_loop=open_loop) for limit in limits}
    names = list(dict.fromkeys([*_METRICS, *wanted.values()]))
    own = user_metrics_of((base, new))
    before, after = Estimates(base, [*names, *own]), Estimates(new, [*names, *own])
    rows = [Row(*name, before.of(*name), after.of(*name), least=_least(name, wanted)) for name in names]
    measured = [row for row in rows if row.base or row.new or (row.metric, row.stat) in wanted.values()]
    tested = _with_intervals(measured)
    by_name = {(row.metric, row.stat): row for row in tested}
    return Comparison(
        base=base,
        new=new,
        rows=tuple(tested),
        server_rows=tuple(_server_rows(base.server_metrics or (), new.server_metrics or ())),
        checks=tuple(Check(limit, by_name[name]) for limit, name in wanted.items()),
        unlike=tuple(_differences(base, new)),
        own=tuple(_with_intervals([Row(*name, before.of(*name), after.of(*name)) for name in own])),
    )


def _named(limit: MaxRegression, *, open_loop: bool) -> tuple[str, str]:
    """Of a bare percentile: response time where both runs have one, else latency."""
    bare = "response_time" if open_loop else "latency"
    return (bare if limit.metric == "default" else limit.metric), limit.stat


def _least(name: tuple[str, str], wanted: dict[MaxRegression, tuple[str, str]]) -> float:
    """The least change worth a word; a limit below it lowers it."""
    usual = LEAST_SUCCESS_CHANGE if name[0] == "success" else LEAST_CHANGE
    return min([usual, *(limit.most for limit, of in wanted.items() if of == name)])


def _ratio(base: float, new: float) -> float | None:
    if base > 0:
        return new / base - 1
    return 0.0 if base == new else None


def _with_intervals(rows: Sequence[Row]) -> list[Row]:
    """The rows with intervals of their change, corrected for how many are tested.

    Holm's procedure (Scandinavian Journal of Statistics 6, 1979) in steps: of m that are left, those whose
    interval at 1 - 0.05 / m excludes no change are significant and leave. Each row keeps the interval of the step
    it left or stayed at, so that it excludes 0 just where the change is significant.
    """
    left = {row.name: row for row in rows if _testable(row)}
    done: dict[str, Row] = {}
    while left:
        confidence = 1 - (1 - CONFIDENCE) / len(left)
        drawn = {name: _with_interval(row, confidence) for name, row in left.items()}
        found = {name: row for name, row in drawn.items() if row.significant}
        done |= found or drawn
        left = {name: row for name, row in left.items() if found and name not in found}
    return [done.get(row.name, row) for row in rows]


def _testable(row: Row) -> bool:
    enough = all(run is not None and run.blocks >= LEAST_BLOCKS for run in (row.base, row.new))
    return enough and row.change is not None


def _with_interval(row: Row, confidence: float) -> Row:
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
    return replace(row, low=math.exp(difference - down) - 1, high=math.exp(difference + up) - 1)


def _freedom(base: Estimate, new: Estimate) -> float:
    """Of two values with errors of their own (Welch, Biometrika 34, 1947); errors as shares of the value."""
    squares = [_relative_error(run) ** 2 for run in (base, new)]
    freedoms = [run.blocks - 1 for run in (base, new)]
    total = sum(squares)
    if not total or math.isinf(total):
        return min(freedoms)
    return total**2 / sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))


def _relative_error(run: Estimate) -> float:
    low, high = run.ends(1)
    return (high - low) / 2 / run.value if run.value else 0.0


def _log(above: float, below: float) -> float:
    return math.log(above / below) if below else math.inf


def _far(above: float, below: float) -> float:
    """A change's end from the ends of the values; what they do not bound is 0 or infinite."""
    if above <= 0:
        return -1.0 if below else 0.0
    return above / below - 1 if below else math.inf


def _server_rows(base: Sequence[ServerMetric], new: Sequence[ServerMetric]) -> Iterator[ServerRow]:
    after = dict(_server_values(new))
    for key, (value, unit, sign) in _server_values(base):
        if key in after:
            name, number = key
            changed, _, sign_after = after[key]
            yield ServerRow(name if number == 1 else f"{name} ({number})", value, changed, unit, (sign, sign_after))


def _server_values(metrics: Sequence[ServerMetric]) -> Iterator[tuple[tuple[str, int], tuple[float, str | None, str]]]:
    """The values that are there, their units, and the sign before what is only a bound.

    One name in several blocks is told by its place: dimensions may differ by run.
    """
    seen: Counter[str] = Counter()
    for metric in metrics:
        for statistic, value in metric.statistics.items():
            name = f"{metric.name} {statistic}"
            seen[name] += 1
            if value is not None and metric.asked:
                yield (name, seen[name]), (value, metric.unit, SIGNS.get(metric.bounds.get(statistic, ""), ""))


def _differences(base: Wave, new: Wave) -> Iterator[str]:
    """In what two runs differ that moves every number, and is no change of the endpoint."""
    for before, after in zip(_conditions(base.plan), _conditions(new.plan), strict=True):
        if before != after:
            yield f"{before} and {after}"
    if base.environment.get("file_sha256") != new.environment.get("file_sha256"):
        yield "the content of the factories (or Locust) file"


def _conditions(plan: WavePlan) -> tuple[str, ...]:
    load = plan.load
    offered = (
        f"{load.text.replace(' requests', '')} {load.arrivals if load.replay is None else 'recorded'}"
        if isinstance(load, OpenLoop)
        else load.text
    )
    return offered, f"{plan.workers} workers", f"{plan.warmup_s.normalize():f} s of warm-up"
