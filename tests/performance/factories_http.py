"""Plain HTTP through geventhttpclient, the way a user writes it: keep-alive, every payload its own number.

BENCHMARK_PERF_URL is the server's address, BENCHMARK_PERF_N how many numbers there are.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from geventhttpclient import HTTPClient

if TYPE_CHECKING:
    from collections.abc import Callable

CONNECTIONS = 10_000
TIMEOUT_S = 60.0


def _send_at_once(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def invoke_factory() -> Callable[[bytes], bytes]:
    client = HTTPClient.from_url(os.environ["BENCHMARK_PERF_URL"], concurrency=CONNECTIONS, network_timeout=TIMEOUT_S)
    client._connection_pool.after_connect = _send_at_once
    post = client.post

    def invoke(payload: bytes) -> bytes:
        response = post("/", payload)
        body: bytes = response.read()
        if response.status_code != 200:
            raise RuntimeError(f"status {response.status_code}")
        return body

    return invoke


def payload_factory() -> dict[str, Any]:
    count = int(os.environ["BENCHMARK_PERF_N"])
    return {"pre_computed": True, "input": [b"%d" % number for number in range(count)]}
