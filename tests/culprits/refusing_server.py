"""A server that has room for a few connections and refuses all others, as one whose backlog is full."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

CONNECTIONS = 10
SERVICE_S = 0.1
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class RefusingServer:
    """Listens until so many connections stand; answers each request on them after the service time."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self._sockets: list[socket.socket] = []
        self._threads = ThreadPoolExecutor(CONNECTIONS + 1)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._threads.submit(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sock in (self._listener, *self._sockets):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self._threads.shutdown()

    def _accept(self) -> None:
        with self._listener, suppress(OSError):
            while len(self._sockets) < CONNECTIONS:
                sock, _ = self._listener.accept()
                self._sockets.append(sock)
                self._threads.submit(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        """One request after the other; their bodies are ``{}``."""
        received = b""
        with suppress(OSError):
            while data := sock.recv(65536):
                received += data
                while b"\r\n\r\n{}" in received:
                    _, _, received = received.partition(b"\r\n\r\n{}")
                    time.sleep(SERVICE_S)
                    sock.sendall(ANSWER)
