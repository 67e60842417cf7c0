"""The answers of a server on one connection, one after the other, through llhttp (geventhttpclient's parser)."""

from __future__ import annotations

from geventhttpclient._parser import HTTPParseError, HTTPResponseParser

from inference_benchmarker.answer_size import AnswerTooLargeError, largest_answer
from inference_benchmarker.clients.body_excerpt import shown

MOST_HEAD = 1 << 20  # bytes of headers, and of trailers; no server of good will sends a tenth of it

_SHOWN = 100  # bytes of what is no answer
_MANY = 256  # pieces: of a byte each, they take eighty times their size


class IncompleteAnswerError(ConnectionError):
    """The server closed the connection within its answer."""


class NotHttpError(ConnectionError):
    """The server sent something that is no answer in HTTP."""


class AnswerParser(HTTPResponseParser):
    """Owns the answer that is coming in: its ``status``, whether its ``head_read`` and it is ``complete``.

    ``pieces`` of its body are taken out by who reads it. Interim answers (1xx) and trailers are passed over. Raises
    NotHttpError for what is no answer, and AnswerTooLargeError for one whose body or trailers do not end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._most = largest_answer()
        self.status = 0
        self.complete = True
        self._spoilt = False
        self.begin("")

    def begin(self, method: str) -> None:
        """Be ready for the answer to a request of this method."""
        self.head_read = False
        self._came, self._room = 0, MOST_HEAD  # bytes of the head, and from its end on of the body with its chunks
        self._trailers = 0
        self.pieces: list[bytearray] = []
        self._bodiless = method == "HEAD"
        self._in_name = False
        self._names: list[str] = []
        self._values: list[str] = []
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The answer's headers: names in lower case, repeated ones joined by a comma; made once."""
        if self._headers is None:
            names = [name.lower() for name in self._names]
            found = self._headers = dict(zip(names, self._values, strict=True))
            if len(found) < len(names):
                found.update(_joined(names, self._values))
        return self._headers

    @property
    def reusable(self) -> bool:
        """Tells whether another answer may follow: this one is complete, and both sides keep the connection."""
        return self.complete and not self._spoilt and bool(self.should_keep_alive())

    def parse(self, data: bytes) -> None:
        """Take in what has come."""
        self._came += len(data)
        if self._came > self._room:
            self._refuse()
        in_head = not self.head_read
        try:
            self.feed(data)
        except HTTPParseError as error:
            self._spoilt = True
            if not self.complete:  # otherwise what is wrong came after the answer
                raise NotHttpError(f"the answer is not HTTP ({error}): {_beginning(data)}") from error
        if len(self.pieces) > _MANY:
            self._join()
        if in_head and self.head_read and not (self.complete and len(data) <= self._most):
            self._begin_body()

    def end(self) -> None:
        """The server has closed the connection, which is how some bodies end. Raises IncompleteAnswerError."""
        try:
            self.feed(b"")
        except HTTPParseError as error:
            raise IncompleteAnswerError("the server closed the connection in the middle of its answer") from error

    @property
    def begun(self) -> bool:
        """Tells whether anything of the answer has come."""
        return self.head_read or bool(self._names)

    def _begin_body(self) -> None:
        """The head has ended, and some of the body may have come with it."""
        self._came, self._room = sum(map(len, self.pieces)), self._most
        if self._came > self._room:
            self._refuse()

    def _join(self) -> None:
        """Make one piece of many, in a time that grows with those that are new."""
        first, *rest = self.pieces
        first += b"".join(rest)
        self.pieces[:] = [first]

    def _refuse(self) -> None:
        self._spoilt = True
        if self.head_read:
            raise AnswerTooLargeError.of_body(self._most)
        raise NotHttpError(f"the headers do not end within {MOST_HEAD:,} bytes")

    def _pass_over(self, trailer: str) -> None:
        self._trailers += len(trailer)
        if self._trailers > MOST_HEAD:
            self._spoilt = True
            raise AnswerTooLargeError(f"the answer's trailers do not end within {MOST_HEAD:,} bytes")

    # What llhttp calls.

    def _on_status(self, text: str) -> None: ...

    def _on_message_begin(self) -> None:
        if self.complete:
            raise HTTPParseError("the server sent data without a request")

    def _on_header_field(self, text: str) -> None:
        if self.head_read:
            self._pass_over(text)
        elif self._in_name:  # a name that two reads share
            self._names[-1] += text
        else:
            self._names.append(text)
            self._in_name = True

    def _on_header_value(self, text: str) -> None:
        if self.head_read:
            self._pass_over(text)
        elif self._in_name:
            self._values.append(text)
            self._in_name = False
        else:
            self._values[-1] += text

    def _on_headers_complete(self) -> bool:
        self.status = self.get_code()
        self.head_read = not 100 <= self.status < 200
        return self._bodiless and self.head_read

    def _on_body(self, data: bytearray) -> None:
        self.pieces.append(data)

    def _on_message_complete(self) -> None:
        if self.head_read:
            self.complete = True
        else:
            self._names.clear()
            self._values.clear()


def _joined(names: list[str], values: list[str]) -> dict[str, str]:
    """The values by name, those of a repeated one joined by a comma."""
    found: dict[str, list[str]] = {}
    for name, value in zip(names, values, strict=True):
        found.setdefault(name, []).append(value)
    return {name: ", ".join(several) for name, several in found.items()}


def _beginning(data: bytes) -> str:
    """The beginning of what came, as it can be shown."""
    return repr(bytes(data)).removeprefix("b") if len(data) <= _SHOWN else f"{shown(data, _SHOWN)!r} ..."
