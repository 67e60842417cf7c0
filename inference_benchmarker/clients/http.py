"""A client for any HTTP endpoint: one URL, any payload, over kept connections."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any

from inference_benchmarker.clients.body_excerpt import shown
from inference_benchmarker.clients.pool import Answer, Limits, Pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike
    from ssl import SSLContext

    from inference_benchmarker.clients.connection import Connection

_TARGET = re.compile(r"/[\x21-\x7e]*")
_SHOWN = 500


class HttpStatusError(Exception):
    """The endpoint's status was not a success (2xx); redirects are not followed.

    The error's key in a report is the class and ``status``. ``headers`` has names in lower case.
    """

    def __init__(self, answer: Answer) -> None:
        elsewhere = f" (it is at {answer.headers['location']})" if "location" in answer.headers else ""
        super().__init__(f"answered {answer.status}{elsewhere}: {shown(answer.body, _SHOWN)}")
        self.status, self.headers, self.body = answer


class HttpClient:
    """Posts payloads to one URL. Create it once in a worker, for all its requests.

    A payload of bytes is sent as it is, and text as UTF-8; anything else becomes lines of CSV if that is the content
    type, and JSON otherwise. An empty ``content_type`` is not sent. ``verify``: whether the server's certificate is
    checked; a path of authorities to check it with, or a context of your own. There are no retries, redirects
    or proxies: nothing is sent twice. Raises HttpStatusError; ConnectTimeoutError, ReadTimeoutError (no byte
    for so long), ConnectionClosedError, IncompleteAnswerError, NotHttpError and other errors of the connection, all of
    which are OSErrors.
    """

    def __init__(
        self,
        url: str,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        verify: bool | str | PathLike[str] | SSLContext = True,
        connect_timeout_s: float | None = 5.0,
        read_timeout_s: float | None = 60.0,
    ) -> None:
        self._pool = Pool(url, verify, Limits(connect_timeout_s, read_timeout_s))
        self._is_csv = content_type.partition(";")[0].strip().lower() == "text/csv"
        fields = {"Content-Type": content_type} if content_type else {}
        self._headers = merged({"Host": self._pool.host, **fields}, headers or {})
        self._common = header_lines(self._headers)

    def post(self, payload: Any, path: str = "", headers: Mapping[str, str] | None = None) -> bytes:
        """The body of the answer. ``path`` is added to the URL's own."""
        return self.request("POST", path, payload, headers).body

    def get(self, path: str = "", headers: Mapping[str, str] | None = None) -> bytes:
        """The body of the answer to a GET."""
        return self.request("GET", path, headers=headers).body

    def request(
        self, method: str, path: str = "", payload: Any = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Status, headers and body of the answer."""
        answer = self._pool.exchange(method, self._encode(method, path, payload, headers))
        if not 200 <= answer.status < 300:
            raise HttpStatusError(answer)
        return answer

    def stream(self, payload: Any, path: str = "", headers: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """Post, and yield the pieces of the answer's body as they come."""
        connection = self.ask(payload, path, headers)
        try:
            while piece := connection.read_piece():
                yield piece
        finally:
            self.release(connection)

    def ask(self, payload: Any, path: str = "", headers: Mapping[str, str] | None = None) -> Connection:
        """Post, and give the connection with the answer's head read; it must be released."""
        connection = self._pool.ask("POST", self._encode("POST", path, payload, headers))
        if not 200 <= connection.status < 300:
            try:
                raise HttpStatusError(Answer(connection.status, connection.headers, connection.read_body()))
            finally:
                self.release(connection)
        return connection

    def release(self, connection: Connection) -> None:
        """Give back what ``ask`` gave."""
        self._pool.release(connection)

    def _encode(self, method: str, path: str, payload: Any, headers: Mapping[str, str] | None) -> bytes:
        target = self._pool.path + path or "/"
        if not _TARGET.fullmatch(target):
            raise ValueError(f"{target!r} is not a path of a URL: it must start with / and have no spaces")
        body = payload if type(payload) is bytes else encode(payload, as_csv=self._is_csv)
        lines = header_lines(merged(self._headers, headers)) if headers else self._common
        head = f"{method} {target} HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body


def merged(headers: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """``headers``, with ``own`` in place of those of the same name, however it is spelt."""
    names = {name.lower() for name in own}
    return {name: value for name, value in headers.items() if name.lower() not in names} | dict(own)


def header_lines(headers: Mapping[str, str]) -> str:
    """Headers as they stand in a request. Raises ValueError for what would not stay one line each."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\r") != len(headers) or lines.count("\n") != len(headers):
        raise ValueError(f"a line break in one of the headers {', '.join(headers)}")
    return lines


def encode(payload: Any, *, as_csv: bool = False) -> bytes:
    """A payload's bytes; of rows, lines of CSV."""
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload)
    if isinstance(payload, str):
        return payload.encode()
    return _csv(payload) if as_csv else json.dumps(payload, separators=(",", ":")).encode()


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(rows)
    return lines.getvalue().encode()
