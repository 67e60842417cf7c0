"""The server's side of a WebSocket (RFC 6455), as much as kubectl's streams need."""

from __future__ import annotations

import base64
import hashlib
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import BufferedIOBase
    from socket import socket

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10
_LAST = 0x80
_NORMAL = struct.pack("!H", 1000)


def answer_to(key: str) -> str:
    """The value of Sec-WebSocket-Accept."""
    return base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode()).digest()).decode()  # noqa: S324 - the protocol's


class WebSocket:
    """A connection whose handshake is done. Several threads may send, one receives."""

    def __init__(self, connection: socket, reader: BufferedIOBase) -> None:
        self._connection, self._reader = connection, reader
        self._lock = threading.Lock()

    def receive(self) -> bytes | None:
        """The next message; None after the last one. OSError where the connection breaks."""
        message = b""
        while True:
            head = self._reader.read(2)
            if len(head) < 2:
                return None
            kind, length = head[0] & 0x0F, head[1] & 0x7F
            if length >= 126:
                size = 2 if length == 126 else 8
                length = int.from_bytes(self._reader.read(size))
            mask = self._reader.read(4) if head[1] & 0x80 else bytes(4)
            content = _masked(self._reader.read(length), mask)
            if kind == _CLOSE:
                return None
            if kind == _PING:
                self._send(_PONG, content)
            elif kind != _PONG:
                message += content
                if head[0] & _LAST:
                    return message

    def send(self, message: bytes) -> None:
        """Send a message. OSError where the connection is broken."""
        self._send(_BINARY, message)

    def close(self) -> None:
        """Say that nothing follows."""
        self._send(_CLOSE, _NORMAL)

    def _send(self, kind: int, content: bytes) -> None:
        size = len(content)
        if size < 126:
            head = struct.pack("!BB", _LAST | kind, size)
        elif size < 2**16:
            head = struct.pack("!BBH", _LAST | kind, 126, size)
        else:
            head = struct.pack("!BBQ", _LAST | kind, 127, size)
        with self._lock:
            self._connection.sendall(head + content)


def _masked(content: bytes, mask: bytes) -> bytes:
    size = len(content)
    if not size:
        return content
    long = mask * (size // 4 + 1)
    return (int.from_bytes(content) ^ int.from_bytes(long[:size])).to_bytes(size)
