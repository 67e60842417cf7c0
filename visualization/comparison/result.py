"""A comparison as programs read it, and ``ab.json``: every number; times in seconds, changes as shares of the base's.

Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from inference_benchmarker.data.decoded import OMITTED, omitted_without
from inference_benchmarker.verdict.finding import Finding  # noqa: TC001 - what is read is decoded by the types
from inference_benchmarker.version import SCHEMA_VERSION
from visualization.comparison.ending import Outcome  # noqa: TC001 - as above
from visualization.comparison.headline import headline
from visualization.comparison.intervals import interval

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.changes import MetricChange, Value
    from visualization.comparison.comparison import Comparison, Side

_OF_ONE_RUN = omitted_without("exit_code")


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run and its verdict."""

    run_dir: str | None
    name: str | None
    verdict: str
    exit_code: int
    interrupted: bool
    limited_by: str | None
    findings: list[Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideResult:
    """A side: of a single run all that is said of it; of several how they end, and each."""

    called: str
    what: str
    run_dir: str | None = field(default=None, metadata=_OF_ONE_RUN)
    name: str | None = field(default=None, metadata=_OF_ONE_RUN)
    verdict: str
    exit_code: int | None = field(default=None, metadata=OMITTED)
    interrupted: bool = field(default=False, metadata=_OF_ONE_RUN)
    limited_by: str | None = field(default=None, metadata=_OF_ONE_RUN)
    findings: list[Finding] = field(default_factory=list, metadata=_OF_ONE_RUN)
    runs: list[RunResult]


@dataclass(frozen=True, slots=True)
class EstimateResult:
    """A value with its own 95% interval, not that of the change; ``precision``: None where it is exact."""

    value: float
    low: float | None
    high: float | None
    lower_bound: bool
    precision: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class RowResult:
    """A metric of both sides. Of the user's own metrics nobody knows whether more is better: no outcome."""

    metric: str
    base: EstimateResult | None
    new: EstimateResult | None
    change: float | None
    low: float | None
    high: float | None
    primary: bool | None = field(default=None, metadata=OMITTED)
    outcome: str | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class ServerRowResult:
    """A statistic of a server metric that both sides have."""

    metric: str
    unit: str | None
    base: float
    new: float
    signs: list[str]
    change: float | None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A limit on a regression, compared with its metric."""

    limit: str
    metric: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The whole result of a comparison."""

    schema_version: int
    headline: str
    base: SideResult
    new: SideResult
    unlike: list[str]
    metrics: list[RowResult]
    user_metrics: list[RowResult]
    client: list[RowResult]
    server_metrics: list[ServerRowResult]
    limits: list[CheckResult]
    strict: bool
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Sent:
    """A wave of one side: in which round, in which run directory below the folder, and whether it counts."""

    side: str
    round: int
    run: str
    verdict: str
    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AbResult:
    """All that is known of one comparison of A and B; ``what``: the endpoint of each side, as it was given.

    ``given_up``: why a side has no more waves; ``aborted``: what was measured of the wave that was aborted, and ended
    all; both empty where none was. ``exit_code``: None while it is going on.
    """

    schema_version: int
    what: dict[str, str]
    repeats: int
    seed: int
    limits: list[str]
    strict: bool
    interrupted: bool
    given_up: str
    aborted: str
    waves: list[Sent]
    exit_code: int | None = None
    comparison: ComparisonResult | None = None
    built_on: dict[str, str] | None = None
    digest: str | None = field(default=None, metadata=OMITTED)


def result_of(comparison: Comparison) -> ComparisonResult:
    """The comparison as it is printed and stored."""
    return ComparisonResult(
        schema_version=SCHEMA_VERSION,
        headline=headline(comparison),
        base=_side(comparison.base),
        new=_side(comparison.new),
        unlike=list(comparison.unlike),
        metrics=[_row(row) for row in comparison.rows],
        user_metrics=[_own(row) for row in comparison.own],
        client=[_row(row) for row in comparison.client],
        server_metrics=[
            ServerRowResult(row.name, row.unit, row.base, row.new, list(row.signs), row.change)
            for row in comparison.server_rows
        ],
        limits=[CheckResult(check.limit.expression, check.row.name, check.state) for check in comparison.checks],
        strict=comparison.strict,
        outcome=comparison.outcome,
    )


def run_of(wave: Wave) -> RunResult:
    """All that is said of a run."""
    path, verdict = None if wave.run_dir is None else str(wave.run_dir.path), wave.verdict
    findings = list(verdict.findings)
    return RunResult(
        path, wave.plan.name, verdict.word, verdict.exit_code, verdict.interrupted, verdict.limited_by, findings
    )


def _side(side: Side) -> SideResult:
    runs = [run_of(wave) for wave in side.waves]
    if len(runs) != 1:
        return SideResult(called=side.name, what=side.what, verdict="VALID" if side.valid else "INVALID", runs=runs)
    (run,) = runs
    members = {each.name: getattr(run, each.name) for each in fields(run)}
    return SideResult(called=side.name, what=side.what, **members, runs=runs)


def _row(row: MetricChange) -> RowResult:
    return replace(_own(row), primary=row.primary, outcome=row.outcome)


def _own(row: MetricChange) -> RowResult:
    high = None if row.high is None or math.isinf(row.high) else row.high
    return RowResult(row.name, _estimate(row.base), _estimate(row.new), row.change, row.low, high)


def _estimate(estimate: Value | None) -> EstimateResult | None:
    if estimate is None:
        return None
    low, high = interval(estimate) or (None, None)
    return EstimateResult(estimate.value, low, high, estimate.is_lower_bound, estimate.precision or None)
