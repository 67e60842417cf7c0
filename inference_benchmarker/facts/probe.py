"""The facts that `benchmark check` learns beside the record: the payload, and what ``invoke`` made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.returned import is_stream
from inference_benchmarker.records.pieces import shown_text
from inference_benchmarker.records.response import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.facts.address import Address

_PREVIEW = 200
_READ = 10_000
"""More than is shown is read, as a secret may begin within what is shown."""


@dataclass(frozen=True, slots=True)
class ProbeFacts:
    """In plain values, so that one process can send it to another. None: did not get that far, or unknown.

    ``payloads`` is how many are pre-computed, ``smallest`` and ``largest`` their bytes; ``answer`` is ``returned``
    or ``streamed``; ``unread`` what is read like a file, ``heard`` by a session.
    ``addresses`` are those it was sent to; ``hidden_status`` that of a response that failed, though the request did
    not; ``raised_at`` the line of the user's code that failed, ``in_hand`` what that code had in its variables.
    """

    payloads: int | None = None
    smallest: int | None = None
    largest: int | None = None
    payload_type: str | None = None
    payload_bytes: int | None = None
    answer: str | None = None
    answer_type: str | None = None
    preview: str = ""
    unread: bool = False
    heard: bool = False
    addresses: Sequence[Address] = ()
    is_sagemaker: bool = False
    hidden_status: str | None = None
    raised_at: str = ""
    in_hand: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Each by its name."""
        return asdict(self)


class Probe:
    """Stands in the place of ``invoke``: hands on what it gives, and remembers it.

    ``heard``: a session hears the answer, and what can be read only once is left to it.
    """

    def __init__(self, invoke: Callable[[Any], Any], *, heard: bool = False) -> None:
        self._invoke = invoke
        self._heard = heard
        self._payload: tuple[Any, ...] = ()
        self._answer: tuple[Any, ...] = ()
        self._pieces: list[Any] = []

    def __call__(self, payload: Any) -> Any:
        """``invoke``."""
        self._payload = (payload,)
        answer = self._invoke(payload)
        self._answer = (answer,)
        return self._handed_on(answer) if is_stream(type(answer)) else answer

    def _handed_on(self, pieces: Iterator[Any]) -> Iterator[Any]:
        for piece in pieces:
            if _is_piece(piece) and len(self._pieces) < _PREVIEW:
                self._pieces.append(piece)
            yield piece

    def seen(self, payloads: Sequence[Any] | None, excerpt: Callable[[str, int], str]) -> ProbeFacts:
        """The facts it saw, when the request is over; ``excerpt`` is a text's beginning without secrets."""
        sizes = [] if payloads is None else [size for size in map(size_of, payloads) if size is not None]
        return ProbeFacts(
            payloads=None if payloads is None else len(payloads),
            smallest=min(sizes, default=None),
            largest=max(sizes, default=None),
            **self._payload_facts(),
            **self._answer_facts(excerpt),
        )

    def _payload_facts(self) -> dict[str, Any]:
        return {
            name: value
            for payload in self._payload
            for name, value in (("payload_type", type_name(payload)), ("payload_bytes", size_of(payload)))
        }

    def _answer_facts(self, excerpt: Callable[[str, int], str]) -> dict[str, Any]:
        if not self._answer:
            return {}
        (answer,) = self._answer
        if is_stream(type(answer)):
            kinds = " and ".join(dict.fromkeys(map(type_name, self._pieces)))
            return {
                "answer": "streamed",
                "answer_type": kinds or None,
                "preview": excerpt("".join(map(_text_of_piece, self._pieces)), _PREVIEW),
            }
        return {
            "answer": "returned",
            "answer_type": type_name(answer),
            "preview": excerpt(_text(answer), _PREVIEW),
            "unread": hasattr(answer, "__next__"),
            "heard": self._heard,
        }


def size_of(payload: Any) -> int | None:
    """Bytes of a payload: of bytes and text as they are, of what JSON can hold as JSON; else None."""
    if isinstance(payload, memoryview):
        return payload.nbytes
    if isinstance(payload, (bytes, bytearray)):
        return len(payload)
    try:
        text = payload if isinstance(payload, str) else json.dumps(payload)
    except (TypeError, ValueError, RecursionError):
        return None
    return len(text.encode("utf-8", "surrogatepass"))


def type_name(value: Any) -> str:
    """A type as people write it: ``bytes``, ``requests.models.Response``."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _is_piece(piece: Any) -> bool:
    is_text = isinstance(piece, (str, bytes, bytearray))
    return bool(piece) if is_text else piece is not None and not isinstance(piece, Response)


def _text_of_piece(piece: Any) -> str:
    plain = isinstance(piece, (str, bytes, bytearray, Number))
    return _text(piece) if plain else shown_text(piece)


def _text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value[:_READ]).decode("utf-8", "replace")
    if value is None or isinstance(value, Response):
        return ""
    try:
        return str(value)
    except Exception as error:  # of the user's own class
        return f"({type_name(error)})"
