"""An object that ``invoke`` returned, such as an HTTP response: is its request over, and did it fail? Pure.

It may be of any class, also of one of the user's whose attributes raise. These rules decide, in this order:

- With a status it is an answer, and failed where that is from 400 on.
- What stands for a request that goes on, or that has not begun, is no answer: the request failed.
- What is left of a response's content is read, since the request is over with its last byte.
- An iterator is a stream, and what it gives are its pieces.
- Anything else is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http.client import IncompleteRead
from types import FunctionType, MethodType
from typing import Any

from inference_benchmarker.answer_size import AnswerTooLargeError, largest_answer

STATUSES = ("status_code", "status")
_ASKED = "get_status_code"
FAILED, LAST_STATUS = 400, 599
"""With a status from the first to the last of these, a request failed."""

Look = Callable[[Any], int | None]
"""Reads what is left of an answer and returns its size; raises where that fails, or the answer says that it failed."""

_PENDING = (("add_done_callback",), ("rawlink",), ("__await__",), ("__aiter__",), ("ready", "get"), ("get_result",))
"""Members of what stands for a request that goes on: futures, greenlets, coroutines, results of pools and of Triton."""

_UNCALLED = (FunctionType, MethodType, partial)
_OPENED = ("__enter__", "__aenter__")
_OF_OPENING = frozenset(("close", "aclose"))

_PIECE = 1 << 16
_NOT_READ = (ValueError, RuntimeError, TypeError)  # it is closed, was read by the file itself, or is no file after all


class StatusError(Exception):
    """``invoke`` returned an answer whose ``status`` says that the request failed."""

    def __init__(self, status: int) -> None:
        super().__init__(f"invoke returned an answer with status {status}")
        self.status = status


class FunctionError(Exception):
    """``invoke`` returned what Lambda says of a function that failed."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"invoke returned an answer with FunctionError {kind}")
        self._benchmark_detail = kind


def is_stream(kind: type) -> bool:
    """Tells whether answers of a class are streams of pieces: iterators, and what is iterated once and then closed."""
    if any(hasattr(kind, name) for name in _READABLE):
        return False
    once = hasattr(kind, "__iter__") and hasattr(kind, "close") and not hasattr(kind, "__len__")
    return hasattr(kind, "__next__") or once


def look_of(answer: Any, *, heard: bool) -> Look:
    """The look at each answer of a class that is no stream, by the first one.

    ``heard``: a session of the user's reads it afterwards, whatever it is.
    """
    kind = type(answer)
    status_of = _asked_status if hasattr(kind, _ASKED) else status_of_answer
    if status_of(answer) is None and not hasattr(kind, "__next__"):
        if any(all(hasattr(kind, name) for name in names) for names in _PENDING):
            return _unfinished
        if issubclass(kind, _UNCALLED) or _is_only_opened(kind):
            return _unsent
    if issubclass(kind, dict):
        return _unread_of_aws if heard else _of_aws
    read = _reader(kind, heard=heard)

    def look(answer: Any) -> int | None:
        size = read(answer)
        raise_for_status(status_of(answer))
        return size

    return look


def raise_for_status(status: int | None) -> None:
    """Raises StatusError where a status says that the request failed."""
    if status is not None and FAILED <= status <= LAST_STATUS:
        raise StatusError(status)


def read_whole(answer: Any) -> None:
    """Read an answer to its end. Raises where it failed, or is none."""
    if is_stream(type(answer)):
        _exhaust(answer)
    else:
        look_of(answer, heard=False)(answer)


def _is_only_opened(kind: type) -> bool:
    """Tells whether nothing can be done with it but open it, by ``with``: so begin the requests of httpx's streams."""
    is_opened = any(hasattr(kind, name) for name in _OPENED)
    return is_opened and all(name.startswith("_") or name in _OF_OPENING for name in dir(kind))


def status_of_answer(answer: Any) -> int | None:
    """The HTTP status of a response object; None where it has none."""
    for name in STATUSES:
        try:
            status = getattr(answer, name, None)
        except Exception:
            status = None
        if isinstance(status, int):
            return int(status)
    return None


def _asked_status(answer: Any) -> int | None:
    """The status of an answer that tells it when it is asked, as those of IBM's SDKs."""
    try:
        status = getattr(answer, _ASKED)()
    except Exception:
        return None
    return int(status) if isinstance(status, int) else None


def _unfinished(answer: Any) -> None:
    raise TypeError(f"invoke returned a {type(answer).__name__}; expected it to return when the request is done")


def _unsent(answer: Any) -> None:
    name = type(answer).__name__
    raise TypeError(f"invoke returned a {name}, which sends nothing until it is opened by `with`, or called")


def _unread_of_aws(answer: dict[Any, Any]) -> None:
    if "FunctionError" in answer and "ResponseMetadata" in answer:
        raise FunctionError(str(answer["FunctionError"]))


def _of_aws(answer: dict[Any, Any]) -> int | None:
    """An answer of boto3, whose body may be a stream."""
    if "ResponseMetadata" not in answer:
        return None
    size = None
    for value in answer.values():
        if hasattr(value, "read"):
            size = _size_of(_pieces(value))
        elif type(value).__name__ == "EventStream":
            _exhaust(value)
    _unread_of_aws(answer)
    return size


def _reader(kind: type, *, heard: bool) -> Look:
    """The way to read what is left of a class of answers; one that is heard only where it keeps what was read."""
    for name, way, kept in _OF_CLIENTS:
        if hasattr(kind, name):
            return kept if heard else way
    if heard:
        return _kept_data if hasattr(kind, "read") and hasattr(kind, "data") else _nothing
    if all(hasattr(kind, name) for name in _OF_HTTP_CLIENT):
        return lambda answer: _size_of(_whole_pieces(answer))
    return (lambda answer: _size_of(_pieces(answer))) if hasattr(kind, "read") else _nothing


_OF_CLIENTS: tuple[tuple[str, Look, Look], ...] = (
    ("iter_content", lambda each: _size_of(each.iter_content(_PIECE)), lambda each: _kept(lambda: each.content)),
    ("iter_raw", lambda each: _size_of(each.iter_raw()), lambda each: _kept(each.read)),
)
"""A member of the responses of requests and of httpx, how these are read, and how they are read and kept."""
_READABLE = ("read", *(name for name, _, _ in _OF_CLIENTS))
_OF_HTTP_CLIENT = ("isclosed", "getheader", "read1")


def _kept_data(answer: Any) -> int | None:
    """A response of urllib3."""
    return _kept(lambda: answer.data)


def _kept(content: Callable[[], Any]) -> int | None:
    try:
        found = content()
    except _NOT_READ:
        return None
    return (len(found) or None) if isinstance(found, bytes) else None


def _pieces(answer: Any) -> Iterator[Any]:
    while piece := answer.read(_PIECE):
        yield piece


def _whole_pieces(answer: Any) -> Iterator[Any]:
    """Those of the standard library's response, which ends without a word where the connection did."""
    yield from _pieces(answer)
    left = getattr(answer, "length", None)
    if left and not answer.closed:  # closed by the file itself
        raise IncompleteRead(b"", left)


def _size_of(pieces: Iterable[Any]) -> int | None:
    """The size of what is left, read to its end; None where nothing is. AnswerTooLargeError where it is too large."""
    size, most = 0, largest_answer()
    try:
        for piece in pieces:
            if not isinstance(piece, bytes | bytearray | str):  # its reading is asynchronous
                break
            size += len(piece)
            if size > most:
                raise AnswerTooLargeError.of_body(most)
    except _NOT_READ:
        if size:
            raise
    return size or None


def _exhaust(stream: Iterable[Any]) -> None:
    for _ in stream:
        pass


def _nothing(answer: Any) -> None:
    pass
