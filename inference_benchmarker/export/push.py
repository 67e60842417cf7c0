"""Sends metrics to an OpenTelemetry collector every few seconds, from a thread of its own. Needs the extra ``otlp``."""

from __future__ import annotations

import logging
import re
import threading
import time
from io import BytesIO
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as SdkMetric
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from requests import RequestException, Response, Session
from requests.adapters import HTTPAdapter

from inference_benchmarker.export.buckets import Buckets
from inference_benchmarker.version import __version__
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.sdk.metrics.export import MetricExporter

    from inference_benchmarker.export.exporter import Exporter
    from inference_benchmarker.export.metric import Metric, Point

INTERVAL_S = 5.0
LAST_S = 5.0  # what the last sending may take: the wave is over, and somebody waits
MOST_ANSWER = 1 << 16  # bytes: a collector says in a few hundred what it did not take
_NAME = "inference-benchmarker"
_REASONS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\[Errno -?\d+\] ([\w ,.-]+)",
        r"(timed out)",
        r"Transient error (.+) encountered",
        r"reason: (.+)",
    )
)
_SCOPE = InstrumentationScope(_NAME, __version__)


class Push:
    """Sends an exporter's metrics to a collector until ``close``; the environment may name its resource."""

    def __init__(self, sender: MetricExporter, exporter: Exporter, interval_s: float = INTERVAL_S) -> None:
        self._sender = sender
        self._exporter = exporter
        self._interval_s = interval_s
        self._resource = Resource({"service.name": _NAME, "service.version": __version__}).merge(
            OTELResourceDetector().detect()
        )
        self._begun_ns = time.time_ns()
        self._ended = threading.Event()
        self.sent = self.failed = 0
        self.reason = _Reason()
        self._thread = threading.Thread(target=self._send_regularly, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send what there is now, once more, and end; a collector that does not answer is waited for ``LAST_S``."""
        self._ended.set()
        self._thread.join(LAST_S)
        self._sender.shutdown()
        self._thread.join(1.0)
        if self._thread.is_alive():  # the last sending did not end
            self.failed += 1
        self.reason.close()

    def _send_regularly(self) -> None:
        while not self._ended.wait(self._interval_s):
            self._send()
        self._send()

    def _send(self) -> None:
        data = metrics_data(self._exporter.metrics, self._resource, self._begun_ns, time.time_ns())
        try:
            done = self._sender.export(data) is MetricExportResult.SUCCESS
        except Exception as error:  # the library's own, for an answer that it does not expect
            done = False
            self.reason.text = type(error).__name__
        self.sent += done
        self.failed += not done


def bounded_session() -> Session:
    """A session that reads no more than ``MOST_ANSWER`` of a collector's answer, as it came.

    A redirect is an error: the metrics did not arrive, and the headers of the environment are for nobody else.
    """
    session = Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Bounded())
    return session


class _Bounded(HTTPAdapter):
    """Reads the beginning of each answer, where requests would read it to its end."""

    def send(self, *request: Any, **more: Any) -> Response:
        """The answer."""
        answer = super().send(*request, **more)
        body = answer.raw.read(MOST_ANSWER, decode_content=False)
        if len(body) == MOST_ANSWER:
            answer.raw.close()  # more may come, and nobody waits for it
        if answer.is_redirect:
            raise RequestException(f"answered {answer.status_code}, elsewhere is {answer.headers['location']}")
        answer.raw = BytesIO(body)
        return answer


class _Reason(logging.Handler):
    """Takes what OpenTelemetry's libraries log, which nobody else sees; ``text``: the last reason of a failure."""

    def __init__(self) -> None:
        super().__init__()
        self.text = "no answer"
        self._logger = logging.getLogger("opentelemetry")
        self._propagated = self._logger.propagate
        self._logger.addHandler(self)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """A library says something."""
        message = redact(record.getMessage())  # before a part of it is taken
        match = next(filter(None, (pattern.search(message) for pattern in _REASONS)), None)
        if match is not None:
            self.text = said(match[1])

    def close(self) -> None:
        """Listen no longer."""
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagated
        super().close()


def metrics_data(metrics: Iterable[Metric], resource: Resource, begun_ns: int, now_ns: int) -> MetricsData:
    """The metrics as OpenTelemetry's exporters take them: everything since ``begun_ns``."""
    found = [
        SdkMetric(metric.otlp_name, metric.about, metric.unit, _data(metric, begun_ns, now_ns)) for metric in metrics
    ]
    scopes = [ScopeMetrics(_SCOPE, found, "")]
    return MetricsData([ResourceMetrics(resource, scopes, "")])


def _data(metric: Metric, begun_ns: int, now_ns: int) -> Sum | Gauge | Histogram:
    if metric.kind == "histogram":
        points = [_histogram_point(point, begun_ns, now_ns) for point in metric.points]
        return Histogram(points, AggregationTemporality.CUMULATIVE)
    numbers = [_number_point(point, begun_ns, now_ns) for point in metric.points]
    if metric.kind == "gauge":
        return Gauge(numbers)
    return Sum(numbers, AggregationTemporality.CUMULATIVE, is_monotonic=True)


def _number_point(point: Point, begun_ns: int, now_ns: int) -> NumberDataPoint:
    assert not isinstance(point.value, Buckets)
    return NumberDataPoint(point.labels, begun_ns, now_ns, point.value)


def _histogram_point(point: Point, begun_ns: int, now_ns: int) -> HistogramDataPoint:
    value = point.value
    assert isinstance(value, Buckets)
    return HistogramDataPoint(
        attributes=point.labels,
        start_time_unix_nano=begun_ns,
        time_unix_nano=now_ns,
        count=value.count,
        sum=value.total,
        bucket_counts=value.counts,
        explicit_bounds=value.edges,
        min=value.least,
        max=value.most,
    )
