"""A page of metrics that answers what a test wants."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Asked(NamedTuple):
    """A request as it came: path with query, headers, and the query's parameters."""

    path: str
    headers: dict[str, str]
    parameters: dict[str, str]


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = cast("Fake", self.server)
        parts = urlsplit(self.path)
        server.asked[parts.path] += 1
        server.authorizations.append(self.headers.get("Authorization"))
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        server.parameters.append(asked)
        status, text = server.answer(Asked(self.path, dict(self.headers.items()), asked)) or (
            server.status,
            server.text,
        )
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", server.kind)
        if 300 <= status < 400:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", str(len(content) + server.withheld))
        self.end_headers()
        self.wfile.write(content)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return cast("Fake", self.server).date or super().date_time_string(timestamp)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class Fake(ThreadingHTTPServer):
    """Gives everybody the same answer, unless ``answer`` has another, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, status: int, text: str, kind: str) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.status, self.text, self.kind = status, text, kind
        self.date: str | None = None
        self.withheld = 0
        self.answer: Callable[[Asked], tuple[int, str] | None] = lambda _: None
        self.asked: Counter[str] = Counter()
        self.authorizations: list[str | None] = []
        self.parameters: list[dict[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def fake(status: int = 200, text: str = "", kind: str = "text/plain") -> Iterator[Fake]:
    server = Fake(status, text, kind)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
