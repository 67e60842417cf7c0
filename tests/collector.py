"""A collector of OpenTelemetry, as far as OTLP over HTTP goes, that keeps what it is sent."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from tests.exported import LABELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.exported import Samples


class Collecting(ThreadingHTTPServer):
    """Takes what comes, and answers with a status."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.status = status
        self.requests: list[ExportMetricsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def last(self) -> Samples:
        """What the newest sending says, under Prometheus' names; the run's own labels are left out."""
        (resource,) = self.requests[-1].resource_metrics
        metrics = [metric for scope in resource.scope_metrics for metric in scope.metrics]
        return {
            (name, frozenset(pair for pair in labels.items() if pair[0] not in LABELS)): value
            for metric in metrics
            for name, labels, value in _samples(metric)
        }


class Taking(BaseHTTPRequestHandler):
    """Reads one sending."""

    server: Collecting

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert self.path == "/v1/metrics"
        self.server.requests.append(ExportMetricsServiceRequest.FromString(body))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        answer = ExportMetricsServiceResponse().SerializeToString()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """In silence."""


@contextmanager
def collecting(status: int = 200) -> Iterator[Collecting]:
    """One on loopback, meanwhile."""
    server = Collecting(status)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _samples(metric: Any) -> Iterator[tuple[str, dict[str, str], float]]:
    """The numbers of a metric, named as a page for Prometheus has them: a histogram is its sum and its count."""
    kind = metric.WhichOneof("data")
    name = metric.name.replace(".", "_") + {"s": "_seconds", "{request}/s": "_per_second"}.get(metric.unit, "")
    for point in getattr(metric, kind).data_points:
        labels = {pair.key: pair.value.string_value for pair in point.attributes}
        if kind == "histogram":
            yield f"{name}_sum", labels, point.sum
            yield f"{name}_count", labels, point.count
        else:
            ending = "_total" if kind == "sum" else ""
            yield f"{name}{ending}", labels, getattr(point, point.WhichOneof("value"))
