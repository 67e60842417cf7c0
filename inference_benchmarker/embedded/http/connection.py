"""A client's connection to the embedded endpoint: one exchange at a time.

Knows nothing of what routes mean, of queues or logs. RFC 9112 as far as load generators need it: keep-alive,
pipelining, Expect: 100-continue.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from inference_benchmarker.embedded.http.messages import Answer, HttpError, Request, json_answer
from inference_benchmarker.embedded.http.parser import MAX_HEAD, parse_head, read_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.embedded.http.parser import Reader

_REASONS = {status.value: status.phrase for status in HTTPStatus}


class HttpConnection(asyncio.Protocol):
    """One client's connection. Hands each request to ``handle`` and takes its answer back.

    One exchange at a time: a pipelined request waits in the buffer and arrives when the one before it has
    been answered, as at other servers. The handler answers with ``send``, or with any number of ``write``
    ended by ``finish``, at once or later; ``drop`` ends the connection instead. Once ``closed`` is true there
    is nobody to answer, and ``on_lost`` is called, if there is one. It stands in ``connections`` as long as it is open.
    (asyncio sets TCP_NODELAY.)
    """

    def __init__(
        self,
        number: int,
        handle: Callable[[HttpConnection, Request], None],
        connections: set[HttpConnection],
    ) -> None:
        self.number = number
        self.closed = False
        self.on_lost: Callable[[], None] | None = None
        self._handle = handle
        self._connections = connections
        self._buffer = bytearray()
        self._request: Request | None = None
        self._body: Reader | None = None
        self._in_exchange = False
        self._taking_up = False
        self._keep_alive = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection stands."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """asyncio: either side has ended the connection."""
        self.closed = True
        self._connections.discard(self)
        if self.on_lost is not None:
            self.on_lost()

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came. The instant is taken before anything else is done with them."""
        now = time.monotonic_ns()
        self._buffer += data
        if not self._in_exchange:
            self._take_up(now)

    def _take_up(self, now_ns: int) -> None:
        """Serve what the buffer holds, until an exchange has to wait or bytes are missing."""
        self._taking_up = True
        try:
            while not (self._in_exchange or self.closed) and (request := self._next_request(now_ns)):
                self._in_exchange = True
                self._keep_alive = request.keep_alive
                self._handle(self, request)
                now_ns = time.monotonic_ns()
        except HttpError as error:
            self._keep_alive = False
            self.send(json_answer(error.status, {"error": error.reason}))
        finally:
            self._taking_up = False

    def _next_request(self, now_ns: int) -> Request | None:
        if self._request is None and not self._read_head(now_ns):
            return None
        assert self._request is not None
        assert self._body is not None
        try:
            next(self._body)
        except StopIteration as end:
            request, self._request = self._request, None
            request.body = end.value
            request.complete_ns = now_ns
            return request
        return None

    def _read_head(self, now_ns: int) -> bool:
        buffer = self._buffer
        while buffer.startswith(b"\r\n"):
            del buffer[:2]
        end = buffer.find(b"\r\n\r\n")
        if max(end, len(buffer) if end < 0 else 0) > MAX_HEAD:
            raise HttpError(431, f"a request's head may have {MAX_HEAD} bytes")
        if end < 0:
            return False
        request = parse_head(bytes(buffer[:end]))
        del buffer[: end + 4]
        request.arrival_ns = now_ns
        self._request, self._body = request, read_body(request.headers, buffer)
        if not buffer and request.headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def encode(self, answer: Answer, length: int | None) -> bytes:
        """The head of an answer and its body; ``length`` None: chunks follow (see ``chunk``)."""
        framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        connection = "keep-alive" if self._keep_alive else "close"
        more = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        return (
            f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, '')}\r\n"
            f"Content-Type: {answer.content_type}\r\n{framing}\r\nConnection: {connection}\r\n{more}\r\n"
        ).encode("latin-1") + answer.body

    def send(self, answer: Answer, *, head_only: bool = False) -> None:
        """The whole answer of the exchange; to HEAD only what would stand above its body."""
        data = self.encode(answer, len(answer.body))
        self.write(data[: len(data) - len(answer.body)] if head_only else data)
        self.finish()

    def write(self, data: bytes) -> None:
        """A part of the answer, from ``encode`` and ``chunk``; sent at once."""
        self._transport.write(data)

    def finish(self) -> None:
        """The answer is complete: close, or turn to what the client has pipelined."""
        self._in_exchange = False
        if not self._keep_alive:
            self.drop()
        elif self._buffer and not self._taking_up:
            asyncio.get_running_loop().call_soon(self._take_up_pipelined)

    def _take_up_pipelined(self) -> None:
        if not (self._in_exchange or self.closed):
            self._take_up(time.monotonic_ns())

    def drop(self) -> None:
        """Close once everything written has left; nothing further is read."""
        self.closed = True
        self._transport.close()
