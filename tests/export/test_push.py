"""Figures on their way to an OpenTelemetry collector: by the SDK's own types, and as a collector receives them."""

from __future__ import annotations

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.resources import Resource

from inference_benchmarker.cli.wave.export_flags import Exports
from inference_benchmarker.cli.wave.exporting import exporting
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.export.buckets import COARSE_S, EDGES_S
from inference_benchmarker.export.destination import Collector
from inference_benchmarker.export.exporter import Exporter
from inference_benchmarker.export.metric_rows import metrics_of
from inference_benchmarker.export.push import Push, metrics_data
from inference_benchmarker.records.label_counters import ValueCounts
from tests.collector import collecting
from tests.exported import LABELS, count_of, figures


class InMemory(MetricExporter):
    """Keeps what it is given, as the SDK's exporters get it."""

    def __init__(self, result: MetricExportResult = MetricExportResult.SUCCESS) -> None:
        super().__init__()
        self.taken: list[MetricsData] = []
        self.came = threading.Event()
        self._result = result

    def export(self, metrics_data: MetricsData, *_: Any, **__: Any) -> MetricExportResult:
        self.taken.append(metrics_data)
        self.came.set()
        return self._result

    def force_flush(self, *_: Any) -> bool:
        return True

    def shutdown(self, *_: Any, **__: Any) -> None:
        self.came.set()


def by_name(data: MetricsData) -> dict[str, Any]:
    (resource,) = data.resource_metrics
    return {metric.name: metric for metric in resource.scope_metrics[0].metrics}


def test_the_metrics_are_the_sdks_own() -> None:
    count = count_of([0.02] * 5 + [2000.0], {"HttpError 503": 2})
    count.named.labels["large"].times["latency"].update(count.cell.times["latency"].counts)
    count.named.metrics["hits"].merge(ValueCounts(4, -2.0, -1.0, 1.0))
    found = by_name(metrics_data(metrics_of([figures(count)]), Resource({}), 1, 2))
    (large,) = found["benchmark.label.latency"].data.data_points
    assert (large.count, large.explicit_bounds) == (6, COARSE_S)
    assert dict(large.attributes) == {**LABELS, "label": "large"}
    (hits,) = found["benchmark.user_metric"].data.data_points
    assert (hits.count, hits.sum, hits.min, hits.max, hits.bucket_counts) == (4, -2.0, -1.0, 1.0, (4,))
    sent = found["benchmark.requests.sent"]
    assert (sent.unit, sent.data.is_monotonic, sent.data.data_points[0].value) == ("{request}", True, 8)
    assert dict(sent.data.data_points[0].attributes) == LABELS
    outcomes = {point.attributes["outcome"]: point.value for point in found["benchmark.requests"].data.data_points}
    assert outcomes == {"ok": 6, "failed": 2, "abandoned": 0}
    assert found["benchmark.requests.in_flight"].data.data_points[0].value == 1
    (latency,) = found["benchmark.latency"].data.data_points
    assert found["benchmark.latency"].unit == "s"
    assert (latency.count, sum(latency.bucket_counts), latency.bucket_counts[-1]) == (6, 6, 1)
    assert len(latency.bucket_counts) == len(latency.explicit_bounds) + 1
    assert latency.min == pytest.approx(0.02, rel=0.01)
    assert latency.max == pytest.approx(2000, rel=0.01)


def test_they_are_sent_now_and_then_and_once_more_in_the_end() -> None:
    exporter, sender = Exporter(), InMemory()
    push = Push(sender, exporter, interval_s=0.01)
    assert sender.came.wait(60)
    exporter.take(figures(count_of([0.1] * 7)))
    push.close()
    assert len(sender.taken) >= 2
    assert by_name(sender.taken[-1])["benchmark.requests.sent"].data.data_points[0].value == 7
    assert (push.sent, push.failed) == (len(sender.taken), 0)


def test_a_sender_that_raises_is_a_failure_that_is_counted() -> None:
    class Raising(InMemory):
        def export(self, *_: Any, **__: Any) -> MetricExportResult:
            raise OSError("no")

    push = Push(Raising(), Exporter(), interval_s=60)
    push.close()
    assert (push.sent, push.failed, push.reason.text) == (0, 1, "OSError")


def test_a_collector_receives_them_with_the_headers_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=not-to-be-told")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=models")
    with collecting() as server, exporting(Exports(collectors=(Collector(f"{server.url}/v1/metrics"),))) as export:
        assert export._exporter is not None
        export._exporter.take(figures(count_of([0.02] * 5)))
    (resource,) = server.requests[-1].resource_metrics
    named = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert (named["service.name"], named["team"]) == ("inference-benchmarker", "models")
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    assert metrics["benchmark.requests.sent"].sum.data_points[0].as_int == 5
    (latency,) = metrics["benchmark.latency"].histogram.data_points
    assert (latency.count, tuple(latency.explicit_bounds)) == (5, EDGES_S)
    assert server.headers[-1]["api-key"] == "not-to-be-told"
    reported = capsys.readouterr().err
    assert "took" not in reported  # nothing failed
    assert "not-to-be-told" not in reported


@pytest.mark.parametrize(("status", "reason"), [(None, "Connection refused"), (401, "Unauthorized")])
def test_a_collector_that_does_not_take_them_is_reported_once_in_the_end(
    status: int | None, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1.5")  # more than the library waits to try again
    with collecting(status or 200) as server:
        url = server.url.replace("//", "//user:secret-word@")
        if status is None:
            server.shutdown()
            server.server_close()
        with exporting(Exports(collectors=(Collector(f"{url}/v1/metrics"),), interval_s=0.2)):
            threading.Event().wait(0.5)
    reported = capsys.readouterr().err
    assert reported.count(reason) == 1
    assert "accepted 0 of" in reported
    assert "secret-word" not in reported


def export_to(server: ThreadingHTTPServer) -> None:
    """Send to a server until the end, with what a command sends with."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        with exporting(Exports(collectors=(Collector(f"http://127.0.0.1:{server.server_port}/v1/metrics"),))):
            pass
    finally:
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_without_end_is_not_read_to_its_end(status: int) -> None:
    sent: list[int] = []

    class Endless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            sent.append(0)
            with suppress(OSError):  # the client may hang up before the first write has ended
                while sum(sent) < 1 << 27:
                    sent.append(self.wfile.write(bytes(1 << 20)))

        def log_message(self, *_: Any) -> None:
            """In silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        export_to(server)
    assert sent
    assert sum(sent) < 1 << 26  # what buffers hold


def test_a_redirect_is_no_success_and_nobody_else_is_sent_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=not-to-be-told")
    with collecting() as other:

        class Redirecting(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(307)
                self.send_header("Location", f"{other.url}/v1/metrics")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """In silence."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
            export_to(server)
        assert other.headers == []
        reported = capsys.readouterr().err
        assert (
            f"accepted 0 of 1 exports of metrics; the last failure: answered 307, elsewhere is {other.url}" in reported
        )


def test_without_the_package_a_line_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    exports = Exports(collectors=(Collector("http://127.0.0.1:9/v1/metrics"),))
    with pytest.raises(BenchmarkError, match=r"inference-benchmarker\[otlp\]"), exporting(exports):
        raise AssertionError("nothing begins")


def test_the_exporter_is_the_librarys_own() -> None:
    """It is called as its class says: a version that wants more would fail here."""
    OTLPMetricExporter(endpoint="http://127.0.0.1:9/v1/metrics", timeout=1.0).shutdown()
