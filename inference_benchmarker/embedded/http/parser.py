"""HTTP/1.1 for the embedded endpoint, from bytes to requests: heads, and bodies as they come.

RFC 9112 as far as load generators need it: Content-Length and chunked bodies, HTTP/1.0.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from urllib.parse import unquote, urlsplit

from inference_benchmarker.embedded.http.messages import HttpError, Request

MAX_HEAD = 64 * 1024
_MAX_BODY = 256 * 1024 * 1024
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_REQUEST_LINE = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([^ ]+) (HTTP/[0-9]\.[0-9])")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_SLASH = re.compile("%2f", re.IGNORECASE)


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
        if len(buffer) > MAX_HEAD:
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
