"""Asks a Prometheus server's HTTP API: a query's value at the window's end, and its course over the window.

https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from inference_benchmarker.facts.server_metric import SAME_CLOCK_S
from server_capacity.metrics.prometheus.block import WINDOW
from server_capacity.metrics.prometheus.promql.answers import (
    NOT_JSON,
    Points,
    decoded,
    fill,
    histograms,
    matrix,
    message,
    unnamed,
    vector,
)
from server_capacity.metrics.prometheus.web import WebError

if TYPE_CHECKING:
    from inference_benchmarker.facts.server_metric import Interval
    from server_capacity.metrics.prometheus.exposition import Labels
    from server_capacity.metrics.prometheus.promql.answers import Native, Vector
    from server_capacity.metrics.prometheus.web import Web

TIMEOUT_S = 30.0
PROBE_S = 5.0
MOST_TIMEOUTS = 3
"""A query that is too heavy for a server that lives does not take the others with it; three of them do."""

POINTS = 300
"""A course has about so many points, and none closer than a second."""

COURSE_WINDOWS_S = (5.0, 60.0)
"""In a course {window} is the first of these, or a step, that brings points, else the wave's length."""

MOST_AROUND_S = 300.0
"""So much of a counter's samples before and after each end of a window is looked at: as far as a server looks back."""

_ONE = "query?query=1"
_ROUNDING_S = 0.002
"""Instants are given in milliseconds: a last point that lies a rounding after the end is still asked for."""


class Api:
    """One server, asked over one window after the other. Every method raises WebError with the reason."""

    def __init__(self, base: str, web: Web, step: float | None) -> None:
        self.base = base.rstrip("/")
        self._web = web
        self._step = step
        self._gone: str | None = None
        self._timeouts = 0

    def begin(self, clock_s: float | None) -> float | None:
        """Begin afresh: by how many seconds our clock, which says ``clock_s``, is ahead, if it differs."""
        self._gone, self._timeouts = None, 0
        if clock_s is None:
            return None
        try:
            date = self._web.get(f"{self.base}/api/v1/{_ONE}", "application/json", TIMEOUT_S).date
        except WebError as error:
            self._gone = str(error)
            return None
        ahead = clock_s - date if date is not None else 0.0
        return ahead if abs(ahead) > SAME_CLOCK_S else None

    def values(self, query: str, interval: Interval) -> tuple[Vector, tuple[str, ...]]:
        """The query's value at the window's end for each series, and what the server warns of."""
        data, warnings = self._at_end(query, interval)
        return decoded(vector, data), warnings

    def histograms(self, query: str, interval: Interval) -> tuple[tuple[Labels, Native], ...]:
        """The native histograms of a query at the window's end."""
        data, _ = self._at_end(query, interval)
        found: tuple[tuple[Labels, Native], ...] = decoded(histograms, data)
        return found

    def samples(self, series: str, interval: Interval) -> dict[Labels, Points]:
        """The samples as they were scraped, by labels without those of the server: those around the window's ends."""
        around = min(interval.end - interval.start, MOST_AROUND_S)
        spans = [(interval.begin - around, interval.start + around), (interval.end - around, interval.end + around)]
        if spans[1][0] <= spans[0][1]:
            spans = [(spans[0][0], spans[1][1])]
        found: dict[Labels, Points] = {}
        for first, last in spans:
            asked = {"query": fill(f"{series}[{WINDOW}]", last - first), "time": f"{last:.3f}"}
            for labels, points in decoded(matrix, self._ask("query", asked)[0]).items():
                found[unnamed(labels)] = found.get(unnamed(labels), ()) + points
        return found

    def course(self, query: str, interval: Interval) -> tuple[dict[Labels, Points], str | None]:
        """The points inside the window by labels, the last at its end; a sentence where the server refused them.

        Each is of the time before it: with the first at the window's start, what came in its last step would be in
        none.
        """
        length = interval.end - interval.start
        step = self._step or max(1.0, math.ceil(length / POINTS))
        widths = [*dict.fromkeys(max(step, width) for width in COURSE_WINDOWS_S if width < length), length]
        start = interval.end - step * math.floor(length / step)
        times = {"start": f"{start:.3f}", "end": f"{interval.end + _ROUNDING_S:.3f}", "step": f"{step:g}"}
        for width in widths if WINDOW in query else [length]:
            try:
                data, _ = self._ask("query_range", {"query": fill(query, width), **times})
                if course := decoded(matrix, data):
                    return course, None
            except WebError as error:
                return {}, f"its time series is missing: {error}"
        return {}, None

    def _at_end(self, query: str, interval: Interval) -> tuple[dict[str, Any], tuple[str, ...]]:
        filled = fill(query, interval.end - interval.start)
        return self._ask("query", {"query": filled, "time": f"{interval.end:.3f}"})

    def _ask(self, verb: str, parameters: dict[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
        if self._gone:
            raise WebError(self._gone, unreachable=True)
        url = f"{self.base}/api/v1/{verb}?{urlencode(parameters, quote_via=quote)}"  # a signed space is %20
        try:
            reply = self._web.get(url, "application/json", TIMEOUT_S)
        except WebError as error:
            if not self._lives():
                self._gone = str(error)
            raise
        try:
            body = json.loads(reply.text)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict) or body.get("status") not in ("success", "error"):
            raise WebError(self._web.refusal(reply, message(body)) if reply.status != 200 else NOT_JSON)
        if body["status"] == "error":
            said = f"{body.get('errorType', 'error')}: {body.get('error', 'no reason given')}"
            raise WebError(self._web.hide(said) if reply.status not in (401, 403) else self._web.refusal(reply, said))
        warnings = body.get("warnings")
        notes = tuple(self._web.hide(str(each)) for each in warnings) if isinstance(warnings, list) else ()
        return decoded(dict, body.get("data")), notes

    def _lives(self) -> bool:
        """Tells whether the server answers something light after it did not answer in time, a few times."""
        self._timeouts += 1
        if self._timeouts >= MOST_TIMEOUTS:
            return False
        try:
            return self._web.get(f"{self.base}/api/v1/{_ONE}", "application/json", min(PROBE_S, TIMEOUT_S)).status < 500
        except WebError:
            return False
