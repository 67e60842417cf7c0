"""The page that Prometheus reads, answered by threads of their own so that nobody who reads it holds a wave up."""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import chain
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING, Any, cast

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.export.buckets import Buckets
from inference_benchmarker.url import names_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inference_benchmarker.export.destination import PageAt
    from inference_benchmarker.export.exporter import Exporter
    from inference_benchmarker.export.metric import Metric

PATIENCE_S = 5.0  # with a reader that sends or takes nothing
MOST_READERS = 8
_NO_END = float("inf")
DASHBOARD = Path(__file__).with_name("grafana_dashboard.json")
_FRONT = """<!doctype html><meta charset="utf-8"><title>benchmark</title>
<p>The running wave's figures: <a href="metrics">/metrics</a> for Prometheus,
<a href="dashboard.json">/dashboard.json</a> to import into Grafana.</p>
"""


class Page:
    """The page of an exporter's metrics, from its making to ``close``; BenchmarkError where it can have no port."""

    def __init__(self, where: PageAt, exporter: Exporter) -> None:
        self.exporter = exporter
        self._read: tuple[Metric, ...] = ()
        self._changed = threading.Condition()
        try:
            self._server = _Server(where.host, where.port, self)
        except OSError as error:
            raise _no_port(where, error) from None
        host, port = self._server.socket.getsockname()[:2]
        self.is_loopback = host.startswith("127.") or host == "::1"
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def note(self, metrics: tuple[Metric, ...]) -> None:
        """Somebody has read these."""
        with self._changed:
            self._read = metrics
            self._changed.notify_all()

    def wait_until_read(self, patience_s: float) -> bool:
        """Wait until somebody has read the newest metrics, and tell whether it was so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._read is self.exporter.metrics, patience_s)

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingTCPServer):
    """Accepts readers, a thread each; one too many ends the connection that has been there longest."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = MOST_READERS

    def __init__(self, host: str, port: int, page: Page) -> None:
        self.page = page
        self._readers: deque[socket.socket] = deque()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), cast("type[BaseRequestHandler]", _Reader))

    def process_request(self, request: Any, client_address: Any) -> None:
        """A reader came."""
        self._readers.append(request)
        if len(self._readers) > MOST_READERS:
            with suppress(OSError):
                self._readers.popleft().shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """A reader has its answer, or left."""
        with suppress(ValueError):  # it was ended for another
            self._readers.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that leaves early, or is too slow, is no trouble of ours."""


class _Reader(BaseHTTPRequestHandler):
    """One request: of the page, of the dashboard, or of what leads to both."""

    timeout = PATIENCE_S
    server_version, sys_version = "benchmark", ""

    def do_GET(self) -> None:
        """Answer."""
        page = cast("_Server", self.server).page
        path = self.path.partition("?")[0]
        if page.is_loopback and not names_loopback(self.headers.get("Host", "")):
            self.send_error(HTTPStatus.FORBIDDEN, explain="This page answers on 127.0.0.1 and localhost only.")
            return
        if path == "/metrics":
            metrics = page.exporter.metrics
            self._send(exposition(metrics), "text/plain; version=0.0.4; charset=utf-8")
            page.note(metrics)
        elif path == "/dashboard.json":
            self._send(DASHBOARD.read_bytes(), "application/json")
        elif path == "/":
            self._send(_FRONT.encode(), "text/html; charset=utf-8")
        else:
            self.send_error(HTTPStatus.NOT_FOUND, explain="The metrics are at /metrics.")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing about readers."""


def exposition(metrics: Iterable[Metric]) -> bytes:
    """The metrics in Prometheus' text format. A page may have thousands of lines, and is read each second."""
    return "".join(chain.from_iterable(map(_lines, metrics))).encode()


def _lines(metric: Metric) -> Iterator[str]:
    name = metric.prometheus_name + ("_total" if metric.kind == "counter" else "")
    yield f"# HELP {name} {_escaped(metric.about)}\n# TYPE {name} {metric.kind}\n"
    for point in metric.points:
        labels = ",".join(f'{label}="{_quoted(value)}"' for label, value in point.labels.items())
        value = point.value
        if not isinstance(value, Buckets):
            yield f"{name}{{{labels}}} {value!r}\n" if labels else f"{name} {value!r}\n"
            continue
        bucket = f'{name}_bucket{{{labels},le="'
        for edge, count in value.cumulative():
            yield f'{bucket}{"+Inf" if edge == _NO_END else edge}"}} {count}\n'
        yield f"{name}_sum{{{labels}}} {value.total!r}\n{name}_count{{{labels}}} {value.count}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _no_port(where: PageAt, error: OSError) -> BenchmarkError:
    given = f"--export prometheus:{where.host}:{where.port}"
    return BenchmarkError(
        f"{given}: cannot listen there ({error.strerror or error}).",
        "Give another port, as prometheus:9465, or prometheus:0 for any free one.",
    )
