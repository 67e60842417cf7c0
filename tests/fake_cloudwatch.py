"""The embedded CloudWatch on a clock that a test turns, over HTTP as boto3 speaks to it, with any fault added."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import AwsError, Caller
from inference_benchmarker.embedded.aws.cloudwatch import CloudWatch
from inference_benchmarker.embedded.aws.metric_store import Cell, Metric, MetricStore
from inference_benchmarker.embedded.config import EndpointConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest

    Fault = Callable[[str, dict[str, Any]], "tuple[int, dict[str, Any]] | None"]


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds


def error(code: str, message: str = "said so", status: int = 400) -> tuple[int, dict[str, Any]]:
    return status, {"__type": f"com.amazonaws.cloudwatch#{code}", "message": message}


class FakeCloudWatch:
    """A sample is visible ``delay`` seconds after the end of its minute (``resolution``).

    ``page``: datapoints a page may have. ``fault`` answers instead of the endpoint, ``edit`` changes its answer.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.delay = 0.0
        self.resolution = 60
        self.page: int | None = None
        self.date: str | None = None
        self.fault: Fault = lambda *_: None
        self.edit: Callable[[dict[str, Any]], None] = lambda *_: None
        self.requests: list[dict[str, Any]] = []
        self._store = MetricStore()
        self._operations = CloudWatch(EndpointConfig(), self._store, clock).service.operations

    def put(self, namespace: str, name: str, dimensions: dict[str, str], *samples: tuple[float, float]) -> None:
        metric = Metric(namespace, name, frozenset(dimensions.items()))
        for at, value in samples:
            stored = at // self.resolution * self.resolution
            self._store.add(metric, Cell(stored, stored + self.resolution + self.delay, "None", [value]))

    def queries(self) -> list[dict[str, Any]]:
        return [query for request in self.requests for query in request.get("MetricDataQueries", [])]

    def answer(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(request)
        if faulty := self.fault(operation, request):
            return faulty
        limit = {"MaxDatapoints": self.page} if self.page and operation == "GetMetricData" else {}
        try:
            answer = self._operations[operation]({**request, **limit}, Caller("us-east-1"))
        except AwsError as refused:
            return error(refused.code, refused.message, refused.status)
        if operation == "GetMetricData":
            self.edit(answer)
        return 200, answer


def cloudwatch_block(
    namespace: str, metrics: dict[str, list[str]], *, endpoint: str = "demo", period: int = 60, lag: float = 0
) -> dict[str, Any]:
    """A block of the configuration that asks for an endpoint's metrics."""
    return {
        "stream": "cloudwatch",
        "Namespace": namespace,
        "Dimensions": [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": "AllTraffic"}],
        "Period": period,
        "Lag": lag,
        "Metrics": list(metrics),
        "Statistics": list(metrics.values()),
    }


@contextmanager
def serving(fake: FakeCloudWatch) -> Iterator[str]:
    """The fake's address while it serves."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = fake.answer(self.headers["X-Amz-Target"].rpartition(".")[2], request)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return fake.date or super().date_time_string(timestamp)

        def log_message(self, *args: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def of_this_machine() -> list[str]:
    """The variables in which boto3 would find what the machine itself has."""
    return [name for name in os.environ if name.startswith(("AWS_", "BOTO"))]


def nothing_configured(folder: Path) -> dict[str, str]:
    """Where else boto3 would look, made empty."""
    return {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(folder / "no-config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "no-credentials"),
    }


def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment in which boto3 finds nothing of the machine's own."""
    for name in of_this_machine():
        monkeypatch.delenv(name)
    for name, value in nothing_configured(tmp_path).items():
        monkeypatch.setenv(name, value)
