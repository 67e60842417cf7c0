"""Counts a server's replicas: a query of PromQL, asked again and again while a wave runs."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from inference_benchmarker.facts.instances import CannotCountError, Count, ScalingEvent
from inference_benchmarker.facts.server_metric import Interval
from server_capacity.metrics.prometheus.promql.api import Api
from server_capacity.metrics.prometheus.web import Web, WebError

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S = 60.0
"""What {window} stands for in the query."""


class Replicas:
    """Implements ``InstanceSource``."""

    def __init__(self, url: str, query: str, web: Web, clock: Callable[[], float] = time.time) -> None:
        self._api = Api(url, web, None)
        self._clock = clock
        self.of = f"replicas at {urlsplit(url).netloc}"
        self.source = query

    def count(self) -> Count:
        """The query's value now."""
        self._api.begin(None)
        now = self._clock()
        try:
            series, _ = self._api.values(self.source, Interval.past(now - WINDOW_S, now))
        except WebError as error:
            raise CannotCountError(str(error)) from None
        if len(series) != 1:
            text = f"gives {len(series)} series: put sum(...) or count(...) around it" if series else "found no series"
            raise CannotCountError(f"the query {text}")
        value = series[0][1]
        if not math.isfinite(value) or value < 0:
            raise CannotCountError(f"the query gives {value:g}")
        return Count(now, value)

    def scaling_events(self, start: float, end: float) -> tuple[list[ScalingEvent], list[str]]:
        """Nothing: Prometheus does not scale."""
        del start, end
        return [], []
