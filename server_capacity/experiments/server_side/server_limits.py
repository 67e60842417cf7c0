"""Limits on a server's metrics as the search's: at which rate each is reached, and which resource is next. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.hardware_use import resource_of, whole_of
from inference_benchmarker.verdict.server.limit_checks import bound_of, held_row, statistic_of, why_no_bound
from server_capacity.experiments.server_side.server_points import metric_series, points
from server_capacity.experiments.server_side.utilisation import Line, Point, line_through
from server_capacity.results.types import bounds
from server_capacity.results.types.server_side import NextResource, Resource, Resources
from server_capacity.search.answer import Estimate, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.plan.server_limit import ServerLimit
    from inference_benchmarker.verdict.server.limit_checks import LimitCheck
    from server_capacity.experiments.measurements.completions import Completions, Span
    from server_capacity.experiments.server_side.server_points import MetricSeries

_IDLE = 0.02
"""A bucket with less than this share of the highest rate is an idle one."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A server's metrics over a search: the rows of all its waves, what was completed when, and at which rates.

    ``spans``: stretches and confirmation waves. ``steady``: the confirmation waves alone. ``without``: times that count
    for nothing.
    """

    rows: tuple[ServerMetric, ...]
    completions: Completions
    spans: tuple[Span, ...] = ()
    steady: tuple[Span, ...] = ()
    without: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerEstimate:
    """A limit on a server metric. ``estimate`` as the search's own are; ``reason``: why it has no rate, or what of it.

    ``line``: what was fitted, in the metric's own unit, and ``bound`` the limit in it.
    """

    limit: ServerLimit
    estimate: Estimate
    bound: float | None = None
    line: Line | None = None
    reason: str = ""

    def at(self, rate: float) -> float | None:
        """The metric's value at a rate by the line, in its own unit; None where there is no line."""
        return None if self.line is None else self.line.at(rate)


def server_estimates(limits: Iterable[ServerLimit], measured: Measured | None) -> list[ServerEstimate]:
    """Each limit's estimate: of several instances or GPUs, of the one that reaches it first.

    ``measured`` None: nothing was reported.
    """
    return [
        _estimate(limit, measured) if measured else _unknown(limit, "the server reported nothing") for limit in limits
    ]


def resources(measured: Measured, limits: Iterable[ServerLimit], low: float) -> Resources | None:
    """The use of each resource at the rate ``low``, and the rate at which it reaches its limit, or 100%.

    The ``resources`` of capacity.json: shares, and requests/s; None where it is unknown.
    """
    named = {limit.name: limit for limit in limits if limit.is_upper}
    found = [
        line
        for course in metric_series(measured.rows)
        if resource_of(course.row) is not None
        for line in _resource(course, measured, named.get(course.row.name), low)
    ]
    reached = [(each.rate, place) for place, each in enumerate(found) if each.rate is not None]
    first = found[min(reached)[1]] if reached else None
    following = None if first is None else NextResource(first.metric, first.at_low, first.limit, first.rate)
    return Resources(following, found) if found else None


def _resource(course: MetricSeries, measured: Measured, limit: ServerLimit | None, low: float) -> Iterator[Resource]:
    whole = whole_of(course.row)
    line = line_through(points(course, measured.completions, measured.spans, measured.without))
    if whole is None or line is None or course.statistic is None:
        return
    bound = whole if limit is None else bound_of(limit, course.row)
    reached = None if bound is None or line.bent else line.reaches(bound)
    yield Resource(
        metric=course.row.name,
        of=course.row.dimensions,
        resource=resource_of(course.row),
        statistic=course.statistic,
        idle=max(line.idle, 0.0) / whole,
        demand_s=line.demand / whole,
        at_low=max(line.at(low), 0.0) / whole,
        limit=None if bound is None else bound / whole,
        rate=None if reached is None else reached[0],
        interval=None if reached is None else bounds.Interval(reached[1].low, reached[1].high),
        unit="share",
        reason=_BENT if line.bent else "",
    )


_BENT = "it does not grow linearly with the rate, so no value is extrapolated beyond the measured rates"


def _estimate(limit: ServerLimit, measured: Measured) -> ServerEstimate:
    rows = [course for course in metric_series(measured.rows) if course.row.name == limit.name]
    if not rows:
        return _unknown(limit, f"the server did not report {limit.name}")
    found = [_of_course(limit, course, measured) for course in rows]
    return min(found, key=_first)


def _first(found: ServerEstimate) -> tuple[bool, float]:
    """The lowest rate; what is not known goes before all, since it may be lower."""
    rate = found.estimate.rate
    return rate is not None or found.estimate.kept_everywhere, float("inf") if rate is None else rate


def _of_course(limit: ServerLimit, course: MetricSeries, measured: Measured) -> ServerEstimate:
    bound = bound_of(limit, course.row)
    if bound is None:
        return _unknown(limit, why_no_bound(limit, course.row))
    found = _points(limit, course, measured)
    if bounded := _bounded(limit, course, measured):
        return _by_bounds(limit, found, bound, bounded)
    if not found:
        return _unknown(limit, course.row.reason or f"no value of {limit.name} arrived while requests were completed")
    return _by_line(limit, found, bound)


def _by_line(limit: ServerLimit, found: Sequence[Point], bound: float) -> ServerEstimate:
    line = line_through(found)
    if line is None:
        return _bracketed(limit, found, bound, f"{limit.name} was measured at only one rate")
    if line.bent:
        return _bracketed(limit, found, bound, f"{limit.name}: {_BENT}")
    worsens = line.demand > 0 if limit.is_upper else line.demand < 0
    reached = line.reaches(bound)
    if reached is None or not worsens:
        return _bracketed(limit, found, bound, f"{limit.name} does not grow with the rate")
    rate, interval = reached
    return ServerEstimate(limit, Estimate(limit.expression, max(rate, 0.0), interval), bound, line)


def _bounded(limit: ServerLimit, course: MetricSeries, measured: Measured) -> list[LimitCheck]:
    """The limit against the rows whose value is only a bound: such pieces of the course are missing from it.

    Of the buckets around a wave the course is whole: the requests in each are known, so idle time spoils none.
    """
    if statistic_of(limit, course.row) != course.statistic:
        checks = [held_row(limit, row) for row in _steady_rows(course, measured)]
    else:
        checks = [held for row in course.rows if (held := held_row(limit, row)).side != "about"]
    return [held for held in checks if held.side is not None]


def _by_bounds(
    limit: ServerLimit, found: Sequence[Point], bound: float, bounded: Sequence[LimitCheck]
) -> ServerEstimate:
    """By the points alone, where the bounds prove enough: what lies beyond them has no line."""
    least = next((held for held in bounded if held.kept is None), bounded[0])
    estimate = _bracketed(limit, found, bound, f"{least.measured}: {least.reason}")
    broken = any(held.kept is False for held in bounded)
    unknown = least.kept is None or not found or (broken and estimate.estimate.kept_everywhere)
    return _unknown(limit, estimate.reason) if unknown else estimate


def _points(limit: ServerLimit, course: MetricSeries, measured: Measured) -> tuple[Point, ...]:
    """The course of the limit's own statistic; of one that no bucket has, a point for each confirmation wave."""
    found = points(course, measured.completions, measured.spans, measured.without)
    statistic = statistic_of(limit, course.row)
    if statistic == course.statistic:
        return found
    most = max((point.rate for point in found), default=0.0)
    idle = tuple(point for point in found if point.rate <= _IDLE * most)
    return (*idle, *_of_waves(course, statistic, measured))


def _of_waves(course: MetricSeries, statistic: str, measured: Measured) -> Iterator[Point]:
    for row in _steady_rows(course, measured):
        value = row.statistics.get(statistic)
        if value is not None and row.start is not None and row.end is not None:
            good, _ = measured.completions.between(row.start, row.end)
            yield Point(good / (row.end - row.start), value, row.end - row.start)


def _steady_rows(course: MetricSeries, measured: Measured) -> Iterator[ServerMetric]:
    """The rows of the confirmation waves."""
    for row in course.rows:
        if row.start is None or row.end is None or row.end <= row.start:
            continue
        if any(span.start - 1 <= row.start and row.end <= span.end + 1 for span in measured.steady):
            yield row


def _bracketed(limit: ServerLimit, found: Sequence[Point], bound: float, reason: str) -> ServerEstimate:
    """By the points alone: the highest rate below which each keeps the limit, and the lowest that does not."""
    broken = min((point.rate for point in found if not limit.met(point.value, bound)), default=None)
    line = line_through(found)
    if broken is None:
        return ServerEstimate(limit, Estimate(limit.expression, kept_everywhere=True), bound, line, reason)
    kept = max((point.rate for point in found if point.rate < broken), default=0.0)
    return ServerEstimate(limit, Estimate(limit.expression, kept, Interval(kept, broken)), bound, line, reason)


def _unknown(limit: ServerLimit, reason: str) -> ServerEstimate:
    return ServerEstimate(limit, Estimate(limit.expression), reason=reason)
