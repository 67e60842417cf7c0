"""The values of a server's metrics beside the rates that were completed meanwhile: what its lines go through. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.hardware_use import resource_of, whole_of
from server_capacity.experiments.measurements.completions import Span
from server_capacity.experiments.server_side.utilisation import Point
from server_capacity.metrics.prometheus.presets import RATIOS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from server_capacity.experiments.measurements.completions import Completions

PROMPT_STREAM = "prometheus"
"""Its values are samples of an instant, which count where there are several; others are means of a bucket."""

DEFAULT_PERIOD_S = 60.0
MOST_FAILED = 0.05
"""A request that failed has hardly the demand of one that did not: with more of them a bucket is left out."""

LEAST_SAMPLES = 3
SETTLING_S = 1.0
"""Samples are of the time just before them: the first ones after a change of the rate are of the rate before it."""


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One metric over a whole search: the rows of its waves put together. ``series``: (unix seconds, value)."""

    row: ServerMetric
    rows: tuple[ServerMetric, ...]
    series: tuple[tuple[float, float], ...]

    @property
    def statistic(self) -> str | None:
        """The statistic that the series is of."""
        return self.row.series_of

    @property
    def period_s(self) -> float:
        """The seconds from one value of the series to the next."""
        return min((b - a for (a, _), (b, _) in pairwise(self.series)), default=DEFAULT_PERIOD_S)

    def mean(self, span: Span) -> float | None:
        """The mean of the values whose time lies in a span; None where there is none."""
        if self.row.stream == PROMPT_STREAM:
            inside = [value for at, value in self.series if span.start <= at < span.end]
        else:
            inside = [value for at, value in self.series if span.start <= at and at + self.period_s <= span.end]
        return sum(inside) / len(inside) if inside else None


def metric_series(rows: Iterable[ServerMetric]) -> list[MetricSeries]:
    """Each metric of several waves; the values of a bucket that two waves share stand there once."""
    found: dict[object, list[ServerMetric]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return [
        MetricSeries(
            several[-1], tuple(several), tuple(sorted({at: v for row in several for at, v in row.series}.items()))
        )
        for several in found.values()
    ]


def points(
    course: MetricSeries, completions: Completions, spans: Sequence[Span], without: Sequence[Span] = ()
) -> tuple[Point, ...]:
    """The course as points: a bucket each or, of samples, a span each. ``without``: times that count for nothing."""
    parts = _of_samples(course, spans) if course.row.stream == PROMPT_STREAM else _of_buckets(course)
    found = []
    for span, value in parts:
        good, failed = completions.between(span.start, span.end)
        spoilt = any(span.start < each.end and each.start < span.end for each in without)
        if not spoilt and failed <= MOST_FAILED * (good + failed):
            seconds = span.end - span.start
            found.append(Point(good / seconds, value, seconds))
    return tuple(found)


def _of_buckets(course: MetricSeries) -> Iterator[tuple[Span, float]]:
    for at, value in course.series:
        yield Span(at, at + course.period_s), value


def _of_samples(course: MetricSeries, spans: Sequence[Span]) -> Iterator[tuple[Span, float]]:
    for span in spans:
        settled = Span(span.start + SETTLING_S, span.end)
        inside = [value for at, value in course.series if settled.start <= at < settled.end]
        if len(inside) >= LEAST_SAMPLES:
            yield settled, sum(inside) / len(inside)


def stretch_values(found: Sequence[MetricSeries], spans: Mapping[int, Span]) -> dict[int, dict[str, float]]:
    """Of each stretch, by its number, what each metric was on average where anything is known; no times of requests.

    The use of a resource is a share of its whole. Several series of one metric are its replicas': those that are shares
    are averaged, all others add up. What follows from two counters, as hits from queries, follows here, too.
    """
    by_name: dict[str, list[MetricSeries]] = {}
    for course in found:
        by_name.setdefault(course.row.name, []).append(course)
    ratios = {ratio for course in found for ratio in RATIOS.get(course.row.namespace or "", ())}
    values = {}
    for number, span in spans.items():
        fields = {name: value for name, each in by_name.items() if (value := _together(each, span)) is not None}
        fields |= {
            ratio.name: ratio.plus + fields[ratio.over] / fields[ratio.under]
            for ratio in ratios
            if ratio.over in fields and fields.get(ratio.under, 0) > 0
        }
        values[number] = fields
    return values


def _together(several: Sequence[MetricSeries], span: Span) -> float | None:
    known = [value for course in several if (value := course.mean(span)) is not None]
    if not known:
        return None
    row = several[0].row
    shares = row.stream != PROMPT_STREAM or resource_of(row) is not None
    mean = sum(known) / len(known) if shares else sum(known)
    return mean / (whole_of(row) or 1.0)
