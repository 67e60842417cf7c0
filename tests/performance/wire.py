"""A proxy that stamps every byte between the tool and a server, and reads the exchanges from the bytes.

Instants are ns of CLOCK_MONOTONIC, as in the records. It knows nothing of the tool's own clients: an exchange begins
with a request's first byte, or with the connection that was opened for it; its first token is the first text that is
not empty in a piece of the answer.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from inference_benchmarker.embedded.listening import listen

# OpenAI's API, its responses, Open Inference Protocol.
_TEXT = re.compile(rb'"(?:content|text|delta)": ?"[^"]|"data": ?\["')
_BLOCK = 1 << 16


@dataclass(slots=True)
class Exchange:
    """A request and the pieces of its answer, as they went by."""

    request: bytes
    arrived_ns: int
    opened: bool  # a connection was opened for it
    pieces: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def answer(self) -> bytes:
        """The whole answer, its head included."""
        return b"".join(piece for _, piece in self.pieces)

    @property
    def status(self) -> int:
        """0 where no answer came."""
        found = re.match(rb"HTTP/1\.[01] (\d{3})", self.answer)
        return int(found[1]) if found else 0

    @property
    def tokens_out(self) -> int | None:
        """The server's usage, where it reported one."""
        found = re.findall(rb'"(?:completion|output)_tokens": ?(\d+)', self.answer)
        return int(found[-1]) if found else None

    @property
    def ttft_ns(self) -> int | None:
        """From the request's first byte to the end of the piece with the first text."""
        said = b""
        for at, piece in self.pieces:
            said += piece
            if _TEXT.search(said):
                return at - self.arrived_ns
        return None


class Wire:
    """The proxy: ``with Wire(port) as wire``; ``wire.url`` leads to the server on ``port``."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._exchanges: list[Exchange] = []
        self._lock = threading.Lock()
        self._socket = listen()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def take(self) -> list[Exchange]:
        """The exchanges since the last call, in order of arrival."""
        with self._lock:
            taken, self._exchanges = self._exchanges, []
        return sorted(taken, key=lambda exchange: exchange.arrived_ns)

    def _accept(self) -> None:
        with suppress(OSError):  # closed: the end
            while True:
                client, _ = self._socket.accept()
                opened_ns = time.monotonic_ns()
                server = socket.create_connection(self._server)
                for sock in (client, server):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                current: list[Exchange] = []
                asking = (client, server, current, opened_ns)
                threading.Thread(target=self._requests, args=asking, daemon=True).start()
                threading.Thread(target=self._answers, args=(client, server, current), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, current: list[Exchange], opened_ns: int) -> None:
        with suppress(OSError):
            while data := client.recv(_BLOCK):
                # Our clients ask again when they have the whole answer: bytes after an answer's begin a request.
                if current and not current[-1].pieces:
                    current[-1].request += data
                else:
                    current.append(Exchange(data, time.monotonic_ns() if current else opened_ns, opened=not current))
                    with self._lock:
                        self._exchanges.append(current[-1])
                server.sendall(data)
        _end(server)

    def _answers(self, client: socket.socket, server: socket.socket, current: list[Exchange]) -> None:
        with suppress(OSError):
            while data := server.recv(_BLOCK):
                current[-1].pieces.append((time.monotonic_ns(), data))
                client.sendall(data)
        _end(client)


def _end(sock: socket.socket) -> None:
    """Hand the end on; the other direction may still have something to say."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
