"""Limits on a server's metrics, compared with what the server reported of a wave. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import SIGNS
from inference_benchmarker.verdict.server.hardware_use import resource_of, whole_of
from inference_benchmarker.verdict.server.known_metrics import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inference_benchmarker.facts.server_metric import Bound, ServerMetric
    from inference_benchmarker.plan.server_limit import ServerLimit

_FINER = "let the server have buckets around the limit, or limit the Average, which is exact"
_PER_SECOND = {"Seconds": 1.0, "Milliseconds": 1e3, "Microseconds": 1e6}


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A limit and the row that is nearest to breaking it, or has. ``kept`` None: ``reason`` says why it is not known.

    ``value`` and ``bound`` in the metric's own unit. ``side``: where the truth lies, if the value is no more than that.
    """

    limit: ServerLimit
    metric: ServerMetric | None = None
    value: float | None = None
    bound: float | None = None
    reason: str = ""
    side: Bound | None = None

    @property
    def kept(self) -> bool | None:
        """Tells whether the limit was kept; None where that is not known, or where a value is on the wrong side."""
        if self.value is None or self.bound is None:
            return None
        met = self.limit.met(self.value, self.bound)
        return met if self.side is None or met is proven_by(self.limit, self.side) else None

    @property
    def excess(self) -> float:
        """By how much the value is beyond the bound, as a share of it; below 0 where it is kept."""
        if self.value is None or not self.bound:
            return 0.0 if self.value is None or self.kept else 1.0
        return (self.value / self.bound - 1) * (1 if self.limit.is_upper else -1)

    @property
    def in_unit(self) -> float | None:
        """The value in the unit of the limit: a share, seconds or a number."""
        if self.value is None or not self.bound:
            return self.value
        return self.value * self.limit.limit / self.bound

    @property
    def text(self) -> str:
        """62.1% of a limit on a share, else the value with its unit; ≥, ≤ or ≈ before one that is no more than that."""
        if self.in_unit is None or self.bound is None:
            return "not known"
        sign = SIGNS[self.side] if self.side else ""
        if is_share(self.limit, self.metric):
            return f"{sign}{100 * self.in_unit:.3g}%"
        return f"{sign}{self.in_unit:.4g}{' s' if self.limit.unit == 's' else ''}"

    @property
    def measured(self) -> str:
        """The metric with its text, for a limit's line; a value that proves neither is only known to be so much."""
        if self.kept is not None:
            return f"{self.limit.name} {self.text}"
        return f"{self.limit.name} {'not measured' if self.side is None else f'only known to be {self.text}'}"


def held_against(limit: ServerLimit, metrics: Iterable[ServerMetric]) -> LimitCheck:
    """The limit against the rows of its metric; of several, each must keep it, so that the worst one is shown."""
    listed = list(metrics)
    rows = [row for row in listed if row.name == limit.name]
    if not rows:
        names = sorted({row.name for row in listed if row.asked})
        text = f"the server reported no {limit.name}, only {', '.join(names)}" if names else ("it was not reported")
        return LimitCheck(limit, reason=text + nearest(limit.name, names))
    found = [held_row(limit, row) for row in rows]
    missed = [each for each in found if each.kept is False]
    unknown = [each for each in found if each.kept is None]
    return max(missed or unknown[:1] or found, key=lambda held: held.excess)


def proven_by(limit: ServerLimit, side: Bound) -> bool | None:
    """The outcome of a limit that a bound on that side can prove: True that it is kept, False that it is missed."""
    return None if side == "about" else limit.is_upper is (side == "at_most")


def statistic_of(limit: ServerLimit, metric: ServerMetric) -> str:
    """The statistic that a limit is on: the one that it names, or the metric's Average, or else its first."""
    if limit.statistic or "Average" in metric.statistics:
        return limit.statistic or "Average"
    return next(iter(metric.statistics))


def bound_of(limit: ServerLimit, metric: ServerMetric) -> float | None:
    """The limit in the metric's own unit; None where ``why_no_bound`` says why."""
    if is_share(limit, metric):
        whole = whole_of(metric)
        return None if whole is None else limit.limit * whole
    if limit.unit == "s":
        per_second = _PER_SECOND.get(metric.unit or "")
        return None if per_second is None else limit.limit * per_second
    return None if _is_misread(limit, metric) else limit.limit


def why_no_bound(limit: ServerLimit, metric: ServerMetric) -> str:
    """The reason for which a limit has no value in the metric's own unit."""
    if limit.unit == "s":
        return f"{metric.name} is not a time, but {metric.unit or 'a plain number'}: write the limit without a unit"
    if resource_of(metric) is None:
        return f"it is not known which {metric.name} is 100%: write the limit as the number that it reports"
    if whole_of(metric) is None:
        return 'it is not known what the endpoint runs on: give "InstanceType" in the --endpoint-config'
    return f"{metric.name} is compared with its total: write {limit.limit:g}%, or a share from 0 to 1"


def is_share(limit: ServerLimit, metric: ServerMetric | None) -> bool:
    """Tells whether a limit is a share of a whole: 70%, or 0.7 of what is the use of a resource."""
    if limit.unit:
        return limit.unit == "share"
    return metric is not None and resource_of(metric) is not None and limit.limit <= 1


def _is_misread(limit: ServerLimit, metric: ServerMetric) -> bool:
    """Tells whether a plain number would be compared with a sum of cores, which hardly anybody means."""
    return not limit.unit and limit.limit > 1 and resource_of(metric) is not None


def held_row(limit: ServerLimit, row: ServerMetric) -> LimitCheck:
    """The limit against one row of its metric."""
    bound = bound_of(limit, row)
    if bound is None:
        return LimitCheck(limit, row, reason=why_no_bound(limit, row))
    statistic = statistic_of(limit, row)
    if statistic not in row.statistics:
        return LimitCheck(limit, row, bound=bound, reason=_no_statistic(row, statistic))
    value = row.statistics[statistic]
    if value is None or not row.complete:
        return LimitCheck(limit, row, bound=bound, reason=row.reason or "it is incomplete")
    side = row.bounds.get(statistic)
    low, high = row.buckets.get(statistic, (bound, bound))
    if side is None and low < bound < high:
        why = _only_within(row, statistic, (low, high)) if row.stream == "prometheus" else row.reason or ""
        return LimitCheck(limit, row, value, bound, why, "about")
    reason = _only_a_bound(row, statistic) if side in ("at_most", "at_least") else row.reason or ""
    return LimitCheck(limit, row, value, bound, reason, side)


def _only_a_bound(row: ServerMetric, statistic: str) -> str:
    """The line that says why a value proves nothing; other streams than Prometheus say it of themselves."""
    if row.stream != "prometheus":
        return row.reason or ""
    value = row.statistics[statistic]
    return f"{row.name}'s buckets show only on which side of {value:.4g} its {statistic} lies: {_FINER}"


def _only_within(row: ServerMetric, statistic: str, bucket: tuple[float, float]) -> str:
    """The line that says why a value that is interpolated proves nothing of a limit within its bucket."""
    low, high = bucket
    return (
        f"{row.name}'s {statistic} is interpolated, and known only to be above {low:.4g} and at most {high:.4g}, as its"
        f" bucket says: {_FINER}"
    )


def _no_statistic(row: ServerMetric, statistic: str) -> str:
    lines: Sequence[str] = list(row.statistics)
    return f"{row.name} has no {statistic}, only {', '.join(lines)}"
