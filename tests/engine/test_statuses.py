"""A response that failed is known, whatever ``invoke`` made of it and by whichever client it came."""

from __future__ import annotations

import threading
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import requests
import urllib3
from geventhttpclient import HTTPClient

from inference_benchmarker.engine.endpoint.factories_file import Endpoint
from inference_benchmarker.engine.worker import statuses
from tests.request_bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Asked(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Asked) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


@pytest.fixture(autouse=True)
def _hooked() -> None:
    statuses.hook()
    statuses.failed_statuses.clear()


def by_http_client(url: str) -> bytes:
    """As urllib, boto3 and others do."""
    address, path = url.removeprefix("http://").split("/")
    with closing(HTTPConnection(address, timeout=10)) as connection:
        connection.request("GET", f"/{path}")
        return connection.getresponse().read()


def by_geventhttpclient(url: str) -> bytes:
    with closing(HTTPClient.from_url(url)) as client:
        return bytes(client.get(url).read())


CLIENTS: dict[str, Callable[[str], Any]] = {
    "http.client": by_http_client,
    "urllib3": lambda url: urllib3.request("GET", url, retries=False).data,
    "requests": lambda url: requests.get(url, timeout=10).json(),
    "httpx": lambda url: httpx2.get(url).json(),
    "geventhttpclient": by_geventhttpclient,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_failed_response_whose_body_is_returned_is_counted(client: str, server: str) -> None:
    bench = Bench(Endpoint(invoke=CLIENTS[client], payloads=[f"{server}/{status}" for status in (200, 503, 404, 503)]))
    records = bench.send(*range(8))
    assert [record.outcome for record in records] == ["ok"] * 8
    assert bench.requests.hidden == {"503": 4, "404": 2}
    assert not statuses.failed_statuses


def test_neither_is_one_that_raises_or_that_another_answer_follows(server: str) -> None:
    def invoke(number: int) -> object:
        failed = requests.get(f"{server}/503", timeout=10)
        if number == 0:
            failed.raise_for_status()
        return failed if number == 1 else requests.get(f"{server}/200", timeout=10).json()

    bench = Bench(Endpoint(invoke=invoke, payloads=[0, 1, 2]))
    assert [record.outcome for record in bench.send(0, 1, 2)] == ["failed", "failed", "ok"]
    assert not bench.requests.hidden
    assert not statuses.failed_statuses


def test_those_of_the_warmup_and_of_other_greenlets_do_not_count(server: str) -> None:
    bench = Bench(Endpoint(invoke=CLIENTS["requests"], payloads=[f"{server}/503"]))
    bench.send(-1)
    statuses.failed_statuses[1] = 503
    quiet = Bench(Endpoint(invoke=lambda _: b"", payloads=[0]))
    quiet.send(0)
    assert not bench.requests.hidden
    assert not quiet.requests.hidden


def test_what_many_greenlets_leave_behind_has_its_bound() -> None:
    for number in range(20_000):
        statuses.failed_statuses[-number - 1] = 500
        statuses.note(500)
    assert len(statuses.failed_statuses) <= 10_001
