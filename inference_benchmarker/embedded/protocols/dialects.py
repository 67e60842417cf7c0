"""The words of the embedded endpoint's answers: a dialect a protocol, none of which knows time or queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.embedded.http.messages import HttpError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.embedded.http.messages import Answer, Request

MODEL = "demo"


class Stream(Protocol):
    """An answer that grows: piece j of n goes out at start + service * (j + 1) / n."""

    head: Answer
    pieces: int

    def events(self, piece: int) -> Sequence[bytes]:
        """The events that go out with a piece, each element an HTTP chunk."""
        ...

    def broken(self) -> Sequence[bytes]:
        """The events that go out in place of a piece to say that nothing more will come, because the model failed."""
        ...


@dataclass(frozen=True, slots=True)
class Deferred:
    """A whole answer that is written when it is ready, since it tells what was found out meanwhile."""

    write: Callable[[], Answer]


class Dialect(Protocol):
    """One protocol's answers. ``sequence`` is the request's number, for ids."""

    def reply(self, request: Request, sequence: int) -> Answer | Stream | Deferred:
        """The answer of a successful request. Raises HttpError where the request is wrong."""
        ...

    def failure(self, status: int, reason: str, sequence: int) -> Answer:
        """The answer by which the protocol says that a request failed."""
        ...


class EventStream:
    """A stream of events or lines, one a piece."""

    __slots__ = ("_broken", "_event", "head", "pieces")

    def __init__(self, head: Answer, pieces: int, event: Callable[[int], bytes], broken: bytes) -> None:
        self.head = head
        self.pieces = pieces
        self._event = event
        self._broken = broken

    def events(self, piece: int) -> Sequence[bytes]:
        """A piece's."""
        return (self._event(piece),)

    def broken(self) -> Sequence[bytes]:
        """The one that reports the failure."""
        return (self._broken,)


def token(index: int) -> str:
    """The text of a token: the numbers from 0, a word each."""
    return f" {index}" if index else "0"


def request_id(sequence: int) -> dict[str, str]:
    """The header by which AWS names a request."""
    return {"x-amzn-RequestId": f"00000000-0000-4000-8000-{sequence:012x}"}


def json_or_none(body: bytes) -> Any:
    """The JSON of a request that may be something else."""
    try:
        return parse_json(body)
    except ValueError:
        return None


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request. Raises HttpError."""
    try:
        asked = parse_json(body)
    except ValueError as error:
        raise HttpError(400, f"the body is not JSON: {error}") from error
    if not isinstance(asked, dict):
        raise HttpError(400, "the body is not a JSON object")
    return asked
