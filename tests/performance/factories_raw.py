"""HTTP through the connection pool and the parser of geventhttpclient, its requests written beforehand.

What is left of a request is what no client can avoid: a write, a wait, a read and the parsing of the answer.
BENCHMARK_PERF_URL is the server's address, BENCHMARK_PERF_N how many payloads there are.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from geventhttpclient.connectionpool import ConnectionPool
from geventhttpclient.response import HTTPSocketPoolResponse

if TYPE_CHECKING:
    from collections.abc import Callable

CONNECTIONS = 10_000
TIMEOUT_S = 60.0


def _send_at_once(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def invoke_factory() -> Callable[[bytes], bytes]:
    address = urlsplit(os.environ["BENCHMARK_PERF_URL"])
    place = (address.hostname, address.port)
    pool = ConnectionPool(*place, *place, size=CONNECTIONS, network_timeout=TIMEOUT_S)
    pool.after_connect = _send_at_once

    def invoke(request: bytes) -> bytes:
        connection = pool.get_socket()
        try:
            connection.sendall(request)
        except BaseException:
            pool.release_socket(connection)
            raise
        response = HTTPSocketPoolResponse(connection, pool, method="POST")
        body: bytes = response.read()
        if response.status_code != 200:
            raise RuntimeError(f"status {response.status_code}")
        return body

    return invoke


def payload_factory() -> dict[str, Any]:
    count = int(os.environ["BENCHMARK_PERF_N"])
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nX-Id: %d\r\n\r\n"
    return {"pre_computed": True, "input": [head % number for number in range(count)]}
