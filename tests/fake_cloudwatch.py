"""CloudWatch over HTTP, as boto3 speaks to it, on a clock that a test turns: samples in, buckets out, any fault."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Fault = Callable[[str, dict[str, Any]], "tuple[int, dict[str, Any]] | None"]

Key = tuple[str, str, frozenset[tuple[str, str]]]


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
    """``samples`` by metric; a sample is visible ``delay`` seconds after the end of its minute (``resolution``)."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.delay = 0.0
        self.resolution = 60
        self.page = 100_800
        self.date: str | None = None
        self.fault: Fault = lambda *_: None
        self.edit: Callable[[dict[str, Any]], None] = lambda *_: None
        self.requests: list[dict[str, Any]] = []
        self.samples: dict[Key, list[tuple[float, float]]] = defaultdict(list)

    def put(self, namespace: str, name: str, dimensions: dict[str, str], *samples: tuple[float, float]) -> None:
        self.samples[namespace, name, frozenset(dimensions.items())].extend(samples)

    def queries(self) -> list[dict[str, Any]]:
        return [query for request in self.requests for query in request.get("MetricDataQueries", [])]

    def answer(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(request)
        if faulty := self.fault(operation, request):
            return faulty
        if operation == "ListMetrics":
            return 200, {"Metrics": list(self._listed(request))}
        answer = self._data(request)
        self.edit(answer)
        return 200, answer

    def _listed(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for namespace, name, dimensions in self.samples:
            if (namespace, name) == (request["Namespace"], request["MetricName"]):
                pairs = [{"Name": key, "Value": value} for key, value in sorted(dimensions)]
                yield {"Namespace": namespace, "MetricName": name, "Dimensions": pairs}

    def _data(self, request: dict[str, Any]) -> dict[str, Any]:
        queries = request["MetricDataQueries"]
        assert len(queries) <= 500
        assert len({query["Id"] for query in queries}) == len(queries)
        assert request["ScanBy"] == "TimestampAscending"
        points = [(query["Id"], *point) for query in queries for point in self._points(query, request)]
        first = int(request.get("NextToken", 0))
        shown = points[first : first + self.page]
        more = first + self.page < len(points)
        ids = {name for name, *_ in shown} if more or first else {query["Id"] for query in queries}
        results = [
            {
                "Id": name,
                "Timestamps": [at for each, at, _ in shown if each == name],
                "Values": [value for each, _, value in shown if each == name],
                "StatusCode": "PartialData" if more and name == shown[-1][0] else "Complete",
            }
            for name in sorted(ids)
        ]
        return {"MetricDataResults": results, **({"NextToken": str(first + self.page)} if more else {})}

    def _points(self, query: dict[str, Any], request: dict[str, Any]) -> Iterator[tuple[int, float]]:
        stat = query["MetricStat"]
        metric, period = stat["Metric"], stat["Period"]
        dimensions = frozenset((each["Name"], each["Value"]) for each in metric["Dimensions"])
        start, end = int(request["StartTime"]), int(request["EndTime"])
        buckets: dict[int, list[float]] = defaultdict(list)
        for at, value in self.samples.get((metric["Namespace"], metric["MetricName"], dimensions), []):
            stored = at // self.resolution * self.resolution
            if start <= stored < end and stored + self.resolution + self.delay <= self.clock.now:
                buckets[int(start + (stored - start) // period * period)].append(value)
        for bucket in sorted(buckets):
            yield bucket, statistic(stat["Stat"], buckets[bucket])


def statistic(name: str, values: list[float]) -> float:
    if name.startswith("p"):
        return sorted(values)[math.ceil(float(name[1:]) / 100 * len(values)) - 1]
    total = math.fsum(values)
    return {
        "Sum": total,
        "SampleCount": float(len(values)),
        "Average": total / len(values),
        "Maximum": max(values),
        "Minimum": min(values),
    }[name]


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
