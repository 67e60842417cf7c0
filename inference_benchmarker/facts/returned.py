"""An object that ``invoke`` returned, such as an HTTP response: is its request over, and did it fail? Pure.

It may be of any class, also of one of the user's whose attributes raise. What is left of its content is read, since the
request is over with its last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

STATUSES = ("status_code", "status")
FAILED = 400
"""From this status on, a request failed."""

Look = Callable[[Any], int | None]
"""Reads what is left of an answer and returns its size; raises where that fails, or the answer says that it failed."""

_PENDING = (("add_done_callback",), ("rawlink",), ("__await__",), ("__aiter__",), ("ready", "get"), ("get_result",))
"""Members of what stands for a request that goes on: futures, greenlets, coroutines, results of pools and of Triton."""

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


def look_of(answer: Any, *, keeps: bool) -> Look:
    """The look at each answer of a class, by the first one. ``keeps``: somebody reads the content afterwards."""
    kind = type(answer)
    if not hasattr(kind, "__next__") and any(all(hasattr(kind, name) for name in names) for names in _PENDING):
        return _unfinished
    if issubclass(kind, dict):
        return _of_aws if not keeps else _unread_of_aws
    read = _reader(kind, keeps=keeps)
    if _status(answer) is None and not any(hasattr(kind, name) for name in STATUSES):
        return read

    def look(answer: Any) -> int | None:
        size = read(answer)
        status = _status(answer)
        if status is not None and FAILED <= status <= 599:
            raise StatusError(status)
        return size

    return look


def _status(answer: Any) -> int | None:
    """The HTTP status of a response object; None where it has none."""
    for name in STATUSES:
        try:
            status = getattr(answer, name, None)
        except Exception:
            status = None
        if isinstance(status, int):
            return int(status)
    return None


def _unfinished(answer: Any) -> None:
    raise TypeError(f"invoke returned a {type(answer).__name__}; expected it to return when the request is done")


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
            size = _rest(value)
        elif type(value).__name__ == "EventStream":
            _exhaust(value)
    _unread_of_aws(answer)
    return size


def _reader(kind: type, *, keeps: bool) -> Look:
    """The way to read a class of responses; those of requests, urllib3 and httpx keep their content."""
    if hasattr(kind, "iter_content"):
        return lambda answer: _kept(lambda: answer.content)
    if hasattr(kind, "iter_raw"):
        return lambda answer: _kept(answer.read)
    if hasattr(kind, "read"):
        if hasattr(kind, "data"):
            return lambda answer: _kept(lambda: answer.data)
        return _nothing if keeps else _rest
    return _exhaust if hasattr(kind, "__next__") and not keeps else _nothing


def _kept(content: Callable[[], Any]) -> int | None:
    try:
        found = content()
    except _NOT_READ:
        return None
    return len(found) if isinstance(found, bytes) else None


def _rest(answer: Any) -> int | None:
    size = 0
    try:
        while (piece := answer.read(_PIECE)) and isinstance(piece, bytes | bytearray | str):
            size += len(piece)
    except _NOT_READ:
        pass
    return size or None


def _exhaust(answer: Iterable[Any]) -> None:
    """A stream of an SDK: its pieces are events of any kind, of which nobody knows here which are tokens."""
    for _ in answer:
        pass


def _nothing(answer: Any) -> None:
    pass
