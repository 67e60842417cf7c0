"""The rows of a block that names a Prometheus server: its queries, and its presets as PromQL."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from server_capacity.metrics.prometheus.block import WINDOW, ServerBlock, Wanted
from server_capacity.metrics.prometheus.derived import derived
from server_capacity.metrics.prometheus.presets import DEFAULTS
from server_capacity.metrics.prometheus.promql import quantities
from server_capacity.metrics.prometheus.promql.answers import (
    IN_A_BUCKET,
    Vector,
    fill,
    hides_quantile,
    no_sample,
    not_finite,
    quantile_of,
    reaches_back,
    unnamed,
)
from server_capacity.metrics.prometheus.promql.api import Api
from server_capacity.metrics.prometheus.promql.gains import NOT_SHOWN, extrapolated, is_unseen, unseen_s
from server_capacity.metrics.prometheus.promql.selectors import extrapolated_selectors, instant_selectors, reach_s
from server_capacity.metrics.prometheus.scraping.reading import MOST_SERIES, STREAM, joined, left_out, none_of
from server_capacity.metrics.prometheus.web import Web, WebError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.server_metric import Bound
    from server_capacity.metrics.prometheus.deltas import Estimate
    from server_capacity.metrics.prometheus.exposition import Labels

VALUE = "Value"
_TOTALS = re.compile(r"\b(increase|histogram_\w+)\s*\(|_bucket\b|_sum\b.*_count\b|_count\b.*_sum\b", re.DOTALL)
"""A query of what was done, for which each answer counts, as for the mean of a sum and a count.

Others are gauges or rates.
"""

READERS = {"gauge": quantities.gauges, "counter": quantities.counters, "histogram": quantities.histograms}


class PrometheusServer:
    """One block that names a Prometheus server."""

    def __init__(self, block: ServerBlock, web: Web) -> None:
        self._api = Api(block.url, web, block.step)
        self._queries = dict(block.queries)
        self._wanted = block.wanted
        self.lag = block.lag
        self._ahead_s: float | None = None

    @property
    def place(self) -> str:
        """Its address."""
        return self._api.base

    def read(self, interval: Interval, clock_s: float | None = None) -> Iterator[ServerMetric]:
        """Every row, as it comes, by our clock. ``clock_s``: what that says now, to compare the server's with."""
        self._ahead_s = self._api.begin(clock_s)
        interval = interval.moved(-(self._ahead_s or 0.0))
        for name, query in self._queries.items():
            yield from self._noted(self._query_rows(name, query, interval))
        rows: list[ServerMetric] = []
        for wanted in self._wanted:
            rows += (found := self._noted(self._preset_rows(wanted, interval)))
            yield from found
        yield from derived(rows)

    def unread(self, reason: str) -> Iterator[ServerMetric]:
        """A row without values for everything that would be asked."""
        for name in self._queries:
            yield ServerMetric(STREAM, name, {VALUE: None}, complete=False, reason=reason)
        for wanted in self._wanted:
            yield self._blank(wanted, reason)

    def _blank(self, wanted: Wanted, reason: str) -> ServerMetric:
        assert wanted.item
        none: dict[str, float | None] = dict.fromkeys(DEFAULTS[wanted.item.kind])
        return ServerMetric(
            STREAM, wanted.name, none, unit=wanted.item.unit, namespace=wanted.preset, complete=False, reason=reason
        )

    def _query_rows(self, name: str, query: str, interval: Interval) -> list[ServerMetric]:
        blank = ServerMetric(STREAM, name, {VALUE: None}, complete=False)
        interval = interval if _TOTALS.search(query) else interval.under_load
        try:
            series, warnings = self._api.values(query, interval)
        except WebError as error:
            return [replace(blank, reason=str(error))]
        if not series:
            return [replace(blank, reason="; ".join(("the query found no series", *warnings)))]
        if (last := self._last_sample(query, interval)) is not None and last <= interval.start:
            return [replace(blank, reason=no_sample(interval))]
        course, trouble = self._api.course(query, interval)
        bounds = self._bounds(query, interval)
        start = interval.start if WINDOW in query else interval.end
        reaches = reaches_back(query, reach_s(fill(query, interval.end - interval.start)), interval)
        unseen = self._unseen(query, interval)
        rows = [
            replace(
                blank,
                statistics={VALUE: value if math.isfinite(value) else None},
                dimensions=dict(labels),
                start=start,
                end=interval.end,
                complete=math.isfinite(value),
                reason=joined(not_finite(value), reaches, unseen, *warnings, trouble),
                series_of=VALUE if course.get(labels) else None,
                series=course.get(labels, ()),
            )
            for labels, value in largest(series)
        ]
        rows = [_bounded(row, bounds.get(tuple(sorted(row.dimensions.items())))) for row in rows]
        if reaches is not None:
            rows = [replace(row, bounds=_near(row), complete=False) for row in rows]
        if unseen is not None:
            rows = [replace(row, bounds=_near(row)) for row in rows]
        if hides_quantile(query):
            rows = [replace(row, bounds=_near(row), reason=joined(row.reason, IN_A_BUCKET)) for row in rows]
        return left_out(rows, len(series))

    def _unseen(self, query: str, interval: Interval) -> str | None:
        """The sentence on what a query extrapolates to the window, where samples cover too little of it."""
        for selector in extrapolated_selectors(query):
            try:
                samples = self._api.samples(selector, interval).values()
            except WebError:
                return NOT_SHOWN
            inside = [points for points in samples if unseen_s(points, interval) < interval.end - interval.start]
            worst = max(inside, key=lambda points: unseen_s(points, interval), default=())
            if worst and is_unseen(worst, interval):
                return extrapolated(worst, interval)
        return None

    def _last_sample(self, query: str, interval: Interval) -> float | None:
        """The time of the oldest sample that the query's instant selectors read; None without one."""
        times: list[float] = []
        for selector in instant_selectors(query):
            try:
                found, _ = self._api.values(f"min(timestamp({selector}))", interval)
            except WebError:
                continue  # such as a server without timestamp(): the value stands as it is
            times += (at for _, at in found)
        return min(times, default=None)

    def _bounds(self, query: str, interval: Interval) -> dict[Labels, Estimate]:
        """The quantiles that the buckets below a ``histogram_quantile`` tell: it invents them in the first and last."""
        if (found := quantile_of(query)) is None:
            return {}
        share, buckets = found
        try:
            return quantities.quantiles(share, self._api.values(buckets, interval)[0])
        except WebError:
            return {}

    def _preset_rows(self, wanted: Wanted, interval: Interval) -> list[ServerMetric]:
        assert wanted.item
        for selector in wanted.selectors:
            try:
                if rows := self._selector_rows(wanted, selector, interval):
                    return rows
            except WebError as error:
                return [self._blank(wanted, str(error))]
        if wanted.item.optional:
            return []
        return [self._blank(wanted, f"the server has {none_of(wanted)} within the window")]

    def _selector_rows(self, wanted: Wanted, selector: tuple[str, Labels], interval: Interval) -> list[ServerMetric]:
        assert wanted.item
        blank = self._blank(wanted, "")
        found, query = READERS[wanted.item.kind](self._api, selector, interval)
        if not found:
            return []
        first = next(iter(blank.statistics))
        points, trouble = self._api.course(query, interval)
        course = {unnamed(labels): each for labels, each in points.items()}
        sizes = ((labels, max(each.values.values(), key=_size, default=0.0)) for labels, each in found.items())
        kept = largest(tuple(sizes))
        rows = []
        for labels, _ in kept:
            each = found[labels]
            odd = dict.fromkeys(not_finite(value) for value in each.values.values())
            rows.append(
                replace(
                    blank,
                    statistics={name: _finite(each.values.get(name)) for name in blank.statistics},
                    bounds=each.bounds,
                    buckets=each.buckets,
                    samples=each.samples,
                    dimensions={"__name__": selector[0], **dict(labels)},
                    start=interval.start,
                    end=(interval.under_load if wanted.item.kind == "gauge" else interval).end,
                    complete=any(math.isfinite(value) for value in each.values.values()),
                    reason=joined(*odd, *each.notes, trouble),
                    series_of=first if course.get(labels) else None,
                    series=course.get(labels, ()),
                )
            )
        return left_out(rows, len(found))

    def _noted(self, rows: list[ServerMetric]) -> list[ServerMetric]:
        """The rows by our clock, and that the server's is another."""
        if (ahead_s := self._ahead_s) is None:
            return rows
        which = "ahead of" if ahead_s > 0 else "behind"
        note = f"this clock is {abs(ahead_s):.0f} s {which} the server's: the window is corrected for that"
        return [
            replace(
                row,
                start=row.start and row.start + ahead_s,
                end=row.end and row.end + ahead_s,
                series=tuple((at + ahead_s, value) for at, value in row.series),
                reason=joined(row.reason, note),
            )
            for row in rows
        ]


def largest(series: Vector) -> list[tuple[Labels, float]]:
    """As many as a metric may have, those with the largest values, in the order of their labels."""
    return sorted(sorted(series, key=lambda pair: -_size(pair[1]))[:MOST_SERIES])


def _bounded(row: ServerMetric, estimate: Estimate | None) -> ServerMetric:
    """The row with the bound in the value's place, where no more is known, or with the bucket that the value is in."""
    if estimate is None:
        return row
    if estimate.bound is None:
        return row if estimate.bucket is None else replace(row, buckets={VALUE: estimate.bucket})
    bounds = {VALUE: estimate.bound}
    return replace(row, statistics={VALUE: estimate.value}, bounds=bounds, complete=True, series_of=None, series=())


def _near(row: ServerMetric) -> dict[str, Bound]:
    """The bounds that say of the value, where there is one, that the window's own may lie on either side."""
    return {VALUE: "about"} if row.statistics[VALUE] is not None else {}


def _size(value: float) -> float:
    return abs(value) if math.isfinite(value) else -1.0


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
