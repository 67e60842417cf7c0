"""A server that says exactly what a test wrote down, byte for byte, and keeps what it was asked."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ssl import SSLContext

# In a script: close the connection here; or sleep for so many seconds; or reset it.
CLOSE, RESET = "close", "reset"
Script = Sequence[bytes | float | str]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: on which connection (from 0), its first line, headers in lower case, and body."""

    connection: int
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ScriptedServer:
    """Gives the n-th request the n-th script; the last one serves all that follow. ``with`` starts and ends it."""

    scripts: Sequence[Script]
    context: SSLContext | None = None
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for sock in self._open:
            sock.close()

    def disappear(self) -> None:
        """Refuse new connections and cut those there are."""
        for sock in (self._listener, *self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(sock)
            threading.Thread(target=self._serve, args=(sock, len(self._open) - 1), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        try:
            if self.context is not None:
                sock = self.context.wrap_socket(sock, server_side=True)
                self._open.append(sock)
            with sock.makefile("rb") as reader:
                while line := reader.readline():
                    headers = dict(_header(reader.readline()) for _ in iter(lambda: reader.peek(2)[:2], b"\r\n"))
                    reader.readline()
                    body = reader.read(int(headers.get("content-length", 0)))
                    with self._lock:
                        self.asked.append(Asked(number, line.decode().rstrip(), headers, body))
                        script = self.scripts[min(len(self.asked), len(self.scripts)) - 1]
                    if not _say(sock, script):
                        return
        except OSError:
            return


def _header(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode("latin-1").rstrip("\r\n").partition(":")
    return name.lower(), value.strip()


def _say(sock: socket.socket, script: Script) -> bool:
    """Whether the connection stays."""
    for part in script:
        if isinstance(part, bytes):
            sock.sendall(part)
        elif isinstance(part, (int, float)):
            time.sleep(part)
        else:
            if part == RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            else:
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
            return False
    return True


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer with Content-Length; underscores in names of headers stand for hyphens."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body


def chunked_head(**headers: str) -> bytes:
    """The head of an answer in chunks."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 200 OK\r\n{lines}Transfer-Encoding: chunked\r\n\r\n".encode()


def chunks(*pieces: bytes) -> bytes:
    """Pieces as chunks, and the end of the answer."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b""))
