"""A long computation tells whoever listens that it has come so far. Pure: the listener has the clock and a place."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Meanwhile the listener hears of this thread's computations: what is done, how much of it, and of how much."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int, of: int) -> None:
    """``what`` has come so far; at its end, and where it is given up, ``done`` is ``of``."""
    if (listener := _listener.get()) is not None:
        listener(what, done, of)
