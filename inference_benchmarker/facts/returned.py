"""An object that ``invoke`` returned, such as an HTTP response: is its request over, and did it fail? Pure.

It may be of any class, also of one of the user's whose attributes raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STATUSES = ("status_code", "status")
FAILED = 400
"""From this status on, a request failed."""

Look = Callable[[Any], None]
"""Raises where an answer says that its request failed, or is not over."""


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


def status_of(answer: Any) -> int | None:
    """The HTTP status of a response object; None where it has none."""
    for name in STATUSES:
        try:
            status = getattr(answer, name, None)
        except Exception:
            status = None
        if isinstance(status, int):
            return int(status)
    return None


def is_stream(kind: type) -> bool:
    """Tells whether its pieces come as they are asked for: an iterator, but nothing that is read like a file."""
    return hasattr(kind, "__next__") and not hasattr(kind, "read")


def look_of(answer: Any) -> Look:
    """The look at each answer of a class, by the first one."""
    kind = type(answer)
    if any(hasattr(kind, name) for name in ("add_done_callback", "rawlink", "__await__", "__aiter__")):
        return _unfinished
    if issubclass(kind, dict):
        return _of_lambda
    return _with_status if status_of(answer) is not None or any(hasattr(kind, name) for name in STATUSES) else _nothing


def _unfinished(answer: Any) -> None:
    raise TypeError(f"invoke returned a {type(answer).__name__}; expected it to return when the request is done")


def _of_lambda(answer: dict[Any, Any]) -> None:
    if "FunctionError" in answer and "ResponseMetadata" in answer:
        raise FunctionError(str(answer["FunctionError"]))


def _with_status(answer: Any) -> None:
    status = status_of(answer)
    if status is not None and FAILED <= status <= 599:
        raise StatusError(status)


def _nothing(answer: Any) -> None:
    pass
