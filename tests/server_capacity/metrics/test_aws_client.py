"""Clients of AWS give up whatever AWS does: also where it answers a byte now and then, for ever."""

from __future__ import annotations

import ast
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError, ResponseStreamingError

from server_capacity.metrics import aws_client
from server_capacity.metrics.cloudwatch import fetch
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDED = threading.Event()


class _Endless(BaseHTTPRequestHandler):
    """Answers without an end, up to what fills a memory; the server counts what it sent."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        piece, server = bytes(1 << 20), cast("_Counting", self.server)
        try:
            while server.sent < 1 << 30 and not ENDED.is_set():
                self.wfile.write(piece)
                server.sent += len(piece)
        except OSError:
            return

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class _Cut(BaseHTTPRequestHandler):
    """Ends within its answer."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"100\r\nabc")

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class _Counting(ThreadingHTTPServer):
    sent = 0


class _Dripping(BaseHTTPRequestHandler):
    """Answers a byte each 50 ms, and never the last of them."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not ENDED.wait(0.05):
            try:
                self.wfile.write(b" ")
            except OSError:
                return

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], monkeypatch: pytest.MonkeyPatch) -> Iterator[_Counting]:
    """Such a service, which boto3's configuration names."""
    ENDED.clear()
    with _Counting(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        for name, value in (
            ("AWS_ENDPOINT_URL", address),
            ("AWS_ACCESS_KEY_ID", "demo"),
            ("AWS_SECRET_ACCESS_KEY", "demo"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        try:
            yield server
        finally:
            ENDED.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def dripping(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a service that drips."""
    with serving(_Dripping, monkeypatch) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def test_an_answer_without_end_is_given_up_at_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory too: a deadline alone lets gigabytes in."""
    monkeypatch.setattr(aws_client, "MOST_BYTES", 1 << 20)
    with serving(_Endless, monkeypatch) as server:
        client = aws_client.make_client("cloudwatch", None, attempts=1, connect_s=5, read_s=20)
        with pytest.raises(ResponseStreamingError, match="more than 1 MiB"):
            client.list_metrics()
        assert server.sent < 1 << 26  # what was read, and what buffers hold


def test_an_answer_that_is_cut_off_is_an_error_of_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its callers know no other."""
    with serving(_Cut, monkeypatch):
        client = aws_client.make_client("cloudwatch", None, attempts=1, connect_s=5, read_s=20)
        with pytest.raises(ConnectionClosedError):
            client.list_metrics()


def test_an_answer_that_drips_for_ever_is_given_up(dripping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_client, "EXCHANGE_S", 0.3)
    client = aws_client.make_client("cloudwatch", None, attempts=1, connect_s=5, read_s=20)
    with pytest.raises(ReadTimeoutError, match=dripping):
        client.list_metrics()


def test_the_time_that_is_waited_is_half_a_minute_for_an_attempt(
    dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def at_once(_: object, timeout_s: float) -> None:
        waited.append(timeout_s)
        raise TimeoutError

    monkeypatch.setattr(aws_client, "in_time", at_once)
    with pytest.raises(ReadTimeoutError, match=dripping):
        fetch.make_client(attempts=2).list_metrics()
    assert waited == [aws_client.EXCHANGE_S] * 2


def test_every_client_of_ours_is_made_so() -> None:
    made = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "server_capacity").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "client"
    ]
    assert made == ["server_capacity/metrics/aws_client.py"]
