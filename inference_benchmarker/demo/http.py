"""HTTP/1.1 for the embedded endpoint: bytes to requests, answers to bytes, one exchange at a time.

Knows nothing of what routes mean, of queues or logs. RFC 9112 as far as load generators need it: keep-alive,
pipelining, Content-Length and chunked bodies, Expect: 100-continue, HTTP/1.0.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Generic, TypeVar, cast
from urllib.parse import parse_qs, unquote, urlsplit

_MAX_HEAD = 64 * 1024
_MAX_BODY = 256 * 1024 * 1024
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_REQUEST_LINE = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([^ ]+) (HTTP/[0-9]\.[0-9])")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_SLASH = re.compile("%2f", re.IGNORECASE)
_REASONS = {status.value: status.phrase for status in HTTPStatus}

T = TypeVar("T")


class HttpError(Exception):
    """A request that cannot be served: the status, the sentence to answer with and headers it needs."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers or {}


@dataclass(slots=True)
class Request:
    """A request; header names are lower case.

    ``arrival_ns``: monotonic, when its head was complete; ``complete_ns``: when its body was, too.
    """

    method: str
    path: str
    query: str
    version: str
    headers: Mapping[str, str]
    arrival_ns: int = 0
    complete_ns: int = 0
    body: bytes = b""

    @property
    def keep_alive(self) -> bool:
        """Whether the client wants the connection to outlive this exchange."""
        wishes = self.headers.get("connection", "").lower()
        return "keep-alive" in wishes if self.version == "HTTP/1.0" else "close" not in wishes

    def parameter(self, name: str) -> str | None:
        """The first value of a query parameter."""
        return next(iter(parse_qs(self.query).get(name, [])), None)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to a request. ``headers``: those beside content type, length and connection."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(status: int, content: object, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer of compact JSON."""
    return Answer(status, json.dumps(content, separators=(",", ":")).encode(), headers=headers or {})


def parse_head(head: bytes) -> Request:
    """A request without its body, from the bytes before the empty line. Raises HttpError."""
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = _REQUEST_LINE.fullmatch(first)
    if not parts:
        raise HttpError(400, "the request line is not METHOD TARGET VERSION")
    method, target, version = parts.groups()
    if not version.startswith("HTTP/1."):
        raise HttpError(505, f"{version} is not spoken here")
    headers = _parse_headers(lines)
    if version == "HTTP/1.1" and "host" not in headers:
        raise HttpError(400, "HTTP/1.1 requires a Host header")
    path, query = _split_target(target)
    return Request(method, path, query, version, headers)


def _parse_headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name):
            raise HttpError(400, "a header line is not NAME: VALUE")
        name, value = name.lower(), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _split_target(target: str) -> tuple[str, str]:
    if not target.startswith("/"):
        parts = urlsplit(target)
        return _decoded(parts.path) or "/", parts.query
    path, _, query = target.partition("?")
    return _decoded(path) if "%" in path else path, query


def _decoded(path: str) -> str:
    """A path without its escapes but those of slashes, which belong to a segment and part none."""
    return "%2F".join(map(unquote, _SLASH.split(path)))


Reader = Generator[None, None, bytes]


def read_body(headers: Mapping[str, str], buffer: bytearray) -> Reader:
    """Takes one body out of a connection's buffer; yields whenever it needs more bytes there."""
    length = _content_length(headers)
    if length is not None:
        return (yield from _exactly(buffer, length))
    body = bytearray()
    while size := _chunk_size((yield from _line(buffer))):
        body += yield from _exactly(buffer, size, already=len(body))
        if (yield from _exactly(buffer, 2)) != b"\r\n":
            raise HttpError(400, "a chunk is longer than it said")
    while (yield from _line(buffer)):
        pass  # trailers
    return bytes(body)


def _content_length(headers: Mapping[str, str]) -> int | None:
    """The body's length; None when it is chunked."""
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is not None:
        if length is not None:
            raise HttpError(400, "Content-Length and Transfer-Encoding exclude each other")
        if coding.lower() != "chunked":
            raise HttpError(501, f"transfer encoding {coding} is unknown")
        return None
    if length is not None and not re.fullmatch("[0-9]{1,15}", length):
        raise HttpError(400, "Content-Length is not a number")
    return int(length or 0)


def _exactly(buffer: bytearray, size: int, already: int = 0) -> Reader:
    if already + size > _MAX_BODY:
        raise HttpError(413, f"a body may have {_MAX_BODY} bytes")
    while len(buffer) < size:
        yield
    taken = bytes(buffer[:size])
    del buffer[:size]
    return taken


def _line(buffer: bytearray) -> Reader:
    while (end := buffer.find(b"\r\n")) < 0:
        if len(buffer) > _MAX_HEAD:
            raise HttpError(400, "a line of the chunked coding has no end")
        yield
    line = bytes(buffer[:end])
    del buffer[: end + 2]
    return line


def _chunk_size(line: bytes) -> int:
    size = _CHUNK_SIZE.fullmatch(line)
    if not size:
        raise HttpError(400, "a chunk's size is not hexadecimal")
    return int(size[1], 16)


class HttpConnection(asyncio.Protocol):
    """One client's connection. Hands each request to ``handle`` and takes its answer back.

    One exchange at a time: a pipelined request waits in the buffer and arrives when the one before it has
    been answered, as at other servers. The handler answers with ``send``, or with any number of ``write``
    ended by ``finish``, at once or later; ``drop`` ends the connection instead. Once ``closed`` is true there
    is nobody to answer. It stands in ``connections`` as long as it is open. (asyncio sets TCP_NODELAY.)
    """

    def __init__(
        self,
        number: int,
        handle: Callable[[HttpConnection, Request], None],
        connections: set[HttpConnection],
    ) -> None:
        self.number = number
        self.closed = False
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
        if max(end, len(buffer) if end < 0 else 0) > _MAX_HEAD:
            raise HttpError(431, f"a request's head may have {_MAX_HEAD} bytes")
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


def chunk(data: bytes) -> bytes:
    """One piece of a chunked answer; empty data is its end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@dataclass(frozen=True, slots=True)
class Route(Generic[T]):
    """What serves a method of a path. ``path`` is a template: ``{...}`` stands for one segment."""

    method: str
    path: str
    target: T


class Routes(Generic[T]):
    """The route table. A path without a template is found by one look-up."""

    def __init__(self, routes: list[Route[T]]) -> None:
        self._by_path: dict[str, dict[str, Route[T]]] = {}
        for route in routes:
            self._by_path.setdefault(route.path, {})[route.method] = route
        self._templates = [
            (re.compile(re.sub(r"\\{.*?\\}", "[^/]+", re.escape(path))), methods)
            for path, methods in self._by_path.items()
            if "{" in path
        ]

    def find(self, method: str, path: str) -> Route[T]:
        """The route; HEAD finds GET's. Raises HttpError 404 or 405."""
        methods = self._by_path.get(path) or self._match(path)
        if methods is None:
            raise HttpError(404, f"there is nothing at {path}")
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allow = ", ".join([*methods, "HEAD"] if "GET" in methods else methods)
            raise HttpError(405, f"{method} is not possible at {path}: {allow} is", {"Allow": allow})
        return route

    def _match(self, path: str) -> dict[str, Route[T]] | None:
        return next((methods for pattern, methods in self._templates if pattern.fullmatch(path)), None)
