"""Asks a Prometheus server: the value at the window's end, and its course, for each query; presets as PromQL.

https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from inference_benchmarker.facts.server_metric import SAME_CLOCK_S, Interval, ServerMetric
from server_capacity.prometheus.answers import (
    NOT_JSON,
    Points,
    Vector,
    decoded,
    fill,
    matrix,
    not_finite,
    promql,
    vector,
)
from server_capacity.prometheus.block import WINDOW, Wanted, wanted_of
from server_capacity.prometheus.exposition import Labels, render_selector
from server_capacity.prometheus.presets import DEFAULTS
from server_capacity.prometheus.reading import MOST_SERIES, STREAM, joined, left_out, none_of
from server_capacity.prometheus.web import Web, WebError, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TIMEOUT_S = 30.0
POINTS = 300
"""A course has about so many points, and none closer than a second."""

COURSE_WINDOWS_S = (5.0, 60.0)
"""In a course {window} is the first of these, or a step, that brings points, else the wave's length."""

VALUE = "Value"


class PrometheusServer:
    """One block that names a Prometheus server."""

    def __init__(self, block: Mapping[str, Any], web: Web) -> None:
        self._base: str = block["url"].rstrip("/")
        self._web = web
        self._queries: dict[str, str] = block.get("queries", {})
        self._wanted = wanted_of(dict(block))
        self._step: float | None = block.get("step")
        self.lag: float = block.get("lag", 0.0)
        self._gone: str | None = None
        self._ahead_s: float | None = None

    @property
    def place(self) -> str:
        """Its address."""
        return self._base

    def read(self, interval: Interval, clock_s: float | None = None) -> Iterator[ServerMetric]:
        """Every row, as it comes. ``clock_s``: what our clock says now, to compare the server's with."""
        self._gone = None
        self._compare_clocks(clock_s)
        for name, query in self._queries.items():
            yield from self._noted(self._query_rows(name, query, interval))
        for wanted in self._wanted:
            yield from self._noted(self._preset_rows(wanted, interval))

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
        try:
            series, warnings = self._at_end(query, interval)
        except WebError as error:
            return [replace(blank, reason=str(error))]
        if not series:
            return [replace(blank, reason="; ".join(("the query found no series", *warnings)))]
        course, trouble = self._course(query, interval)
        start = interval.start if WINDOW in query else interval.end
        rows = [
            replace(
                blank,
                statistics={VALUE: value if math.isfinite(value) else None},
                dimensions=dict(labels),
                start=start,
                end=interval.end,
                complete=math.isfinite(value),
                reason=joined(not_finite(value), *warnings, trouble),
                series_of=VALUE if course.get(labels) else None,
                series=course.get(labels, ()),
            )
            for labels, value in largest(series)
        ]
        return left_out(rows, len(series))

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
        queries = {statistic: promql(selector, statistic) for statistic in blank.statistics}
        values: dict[Labels, dict[str, float]] = {}
        for statistic, query in queries.items():
            for labels, value in self._at_end(query, interval)[0]:
                values.setdefault(_unnamed(labels), {})[statistic] = value
            if not values:
                return []
        first = next(iter(queries))
        gauge = wanted.item.kind == "gauge"
        course, trouble = self._course(render_selector(*selector) if gauge else queries[first], interval)
        course = {_unnamed(labels): points for labels, points in course.items()}
        kept = largest(tuple((labels, max(by.values(), key=_size)) for labels, by in values.items()))
        rows = [
            replace(
                blank,
                statistics={each: _finite(values[labels].get(each)) for each in queries},
                dimensions={"__name__": selector[0], **dict(labels)},
                start=interval.start,
                end=interval.end,
                complete=any(math.isfinite(value) for value in values[labels].values()),
                reason=joined(*(dict.fromkeys(not_finite(value) for value in values[labels].values())), trouble),
                series_of=first if course.get(labels) else None,
                series=course.get(labels, ()),
            )
            for labels, _ in kept
        ]
        return left_out(rows, len(values))

    def _at_end(self, query: str, interval: Interval) -> tuple[Vector, tuple[str, ...]]:
        """The query at the window's end, and what the server warns of."""
        filled = fill(query, interval.end - interval.start)
        data, warnings = self._ask("query", {"query": filled, "time": f"{interval.end:.3f}"})
        return decoded(vector, data), warnings

    def _course(self, query: str, interval: Interval) -> tuple[dict[Labels, Points], str | None]:
        """The points inside the window by labels; a sentence where the server refused them."""
        length = interval.end - interval.start
        step = self._step or max(1.0, math.ceil(length / POINTS))
        widths = [*dict.fromkeys(max(step, width) for width in COURSE_WINDOWS_S if width < length), length]
        times = {"start": f"{interval.start:.3f}", "end": f"{interval.end:.3f}", "step": f"{step:g}"}
        for width in widths if WINDOW in query else [length]:
            try:
                data, _ = self._ask("query_range", {"query": fill(query, width), **times})
                if course := decoded(matrix, data):
                    return course, None
            except WebError as error:
                return {}, f"its course is missing: {error}"
        return {}, None

    def _ask(self, verb: str, parameters: dict[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
        if self._gone:
            raise WebError(self._gone, unreachable=True)
        url = f"{self._base}/api/v1/{verb}?{urlencode(parameters)}"
        try:
            reply = self._web.get(url, "application/json", TIMEOUT_S)
        except WebError as error:
            self._gone = str(error)
            raise
        try:
            body = json.loads(reply.text)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict) or body.get("status") not in ("success", "error"):
            raise WebError(refusal(reply) if reply.status != 200 else NOT_JSON)
        if body["status"] == "error":
            said = f"{body.get('errorType', 'error')}: {body.get('error', 'no reason given')}"
            raise WebError(self._web.hide(said) if reply.status not in (401, 403) else refusal(reply, said))
        warnings = body.get("warnings")
        told = tuple(self._web.hide(str(each)) for each in warnings) if isinstance(warnings, list) else ()
        return decoded(dict, body.get("data")), told

    def _compare_clocks(self, clock_s: float | None) -> None:
        self._ahead_s = None
        if clock_s is None:
            return
        try:
            date = self._web.get(f"{self._base}/api/v1/query?query=1", "application/json", TIMEOUT_S).date
        except WebError as error:
            self._gone = str(error)
            return
        ahead = clock_s - date if date is not None else 0.0
        self._ahead_s = ahead if abs(ahead) > SAME_CLOCK_S else None

    def _noted(self, rows: list[ServerMetric]) -> list[ServerMetric]:
        if self._ahead_s is None:
            return rows
        which = "ahead of" if self._ahead_s > 0 else "behind"
        note = f"this clock is {abs(self._ahead_s):.0f} s {which} the server's, so the window is off by that"
        return [replace(row, reason=joined(row.reason, note)) for row in rows]


def largest(series: Vector) -> list[tuple[Labels, float]]:
    """As many as a metric may have, those with the largest values, in the order of their labels."""
    return sorted(sorted(series, key=lambda pair: -_size(pair[1]))[:MOST_SERIES])


def _size(value: float) -> float:
    return abs(value) if math.isfinite(value) else -1.0


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _unnamed(labels: Labels) -> Labels:
    return tuple(pair for pair in labels if pair[0] != "__name__")
