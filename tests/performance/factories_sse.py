"""Token streams (server-sent events) through geventhttpclient: each event is yielded as it comes.

BENCHMARK_PERF_URL is the server's address, BENCHMARK_PERF_N how many numbered payloads there are.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from geventhttpclient import HTTPClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONNECTIONS = 10_000
TIMEOUT_S = 60.0
END_OF_EVENT = b"\n\n"
END_OF_STREAM = b"data: [DONE]\n\n"


def _send_at_once(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def invoke_factory() -> Callable[[bytes], Iterator[bytes]]:
    client = HTTPClient.from_url(os.environ["BENCHMARK_PERF_URL"], concurrency=CONNECTIONS, network_timeout=TIMEOUT_S)
    client._connection_pool.after_connect = _send_at_once
    post = client.post

    def invoke(payload: bytes) -> Iterator[bytes]:
        response = post("/", payload)
        if response.status_code != 200:
            raise RuntimeError(f"status {response.status_code}")
        while event := response.readline(END_OF_EVENT):  # reads to the end of the answer: keep-alive
            if event != END_OF_STREAM:
                yield event

    return invoke


def payload_factory() -> dict[str, Any]:
    count = int(os.environ["BENCHMARK_PERF_N"])
    return {"pre_computed": True, "input": [b"%d" % number for number in range(count)]}
