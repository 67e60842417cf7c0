"""The messages on a connection of the embedded endpoint: requests, answers and errors."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.embedded.llm.token_job import TokenJob


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

    ``arrival_ns``: monotonic, when its head was complete; ``complete_ns``: when its body was, too. ``cached``: the
    endpoint's cache has the body; None without a cache. ``job``: what it asks of an LLM engine; None of another server.
    """

    method: str
    path: str
    query: str
    version: str
    headers: Mapping[str, str]
    arrival_ns: int = 0
    complete_ns: int = 0
    body: bytes = b""
    cached: bool | None = None
    job: TokenJob | None = None

    @property
    def keep_alive(self) -> bool:
        """Tells whether the client wants the connection to outlive this exchange."""
        wishes = self.headers.get("connection", "").lower()
        return "keep-alive" in wishes if self.version == "HTTP/1.0" else "close" not in wishes

    def parameter(self, name: str) -> str | None:
        """The first value of a query parameter."""
        return next(iter(parse_qs(self.query).get(name, [])), None)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request. ``headers``: those beside content type, length and connection."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(status: int, content: object, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer of compact JSON."""
    return Answer(status, json.dumps(content, separators=(",", ":")).encode(), headers=headers or {})


def chunk(data: bytes) -> bytes:
    """One piece of a chunked answer; empty data is its end."""
    return b"%x\r\n%b\r\n" % (len(data), data)
