"""One deadline for a whole exchange: a socket's own time-out begins anew with each byte that comes."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Found = TypeVar("Found")


def in_time(ask: Callable[[], Found], timeout_s: float) -> Found:
    """The result of ``ask``, or what it raised; TimeoutError where neither came within so many seconds.

    It runs in a thread of its own, for which nobody waits any longer then.
    """
    result: Future[Found] = Future()

    def run() -> None:
        try:
            result.set_result(ask())
        except Exception as error:
            result.set_exception(error)

    threading.Thread(target=run, name="question", daemon=True).start()
    return result.result(timeout_s)
