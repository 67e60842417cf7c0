"""Whoever hears how a wave goes on: the live view on a terminal, plain lines elsewhere, or nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.wave.spool.spool_state import SpoolState

PATIENCE_S = 2.0  # what takes longer is said where it is not shown


class Live(Protocol):
    """A listener to a wave."""

    def say(self, message: str) -> None:
        """A sentence about what happens now."""

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on; ``now_ns`` is nanoseconds after wave start, ``spool_state.feed`` has the figures."""

    def close(self) -> None:
        """The wave is over."""


@runtime_checkable
class ShowsStart(Protocol):
    """A listener that shows what a wave waits for before it begins; one that does not hears where it takes long."""

    def starting(self, what: str, seconds: float) -> None:
        """The wave has not begun: what is waited for, and for how long by now."""


class FaultTolerantView:
    """A view that may fail: what cannot be shown is left out, for that is no reason to lose a wave."""

    def __init__(self, view: Live) -> None:
        self._view: Live | None = view
        self._next_s = PATIENCE_S

    def starting(self, what: str, seconds: float) -> None:
        """Hand on, or say it now and then."""
        if isinstance(self._view, ShowsStart):
            view = self._view
            self._try(lambda _: view.starting(what, seconds))
        elif seconds >= self._next_s:
            self._next_s = seconds + 5 * PATIENCE_S
            self.say(what)

    def say(self, message: str) -> None:
        """Hand on."""
        self._try(lambda view: view.say(message))

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """Hand on."""
        self._try(lambda view: view.update(spool_state, now_ns))

    def close(self) -> None:
        """Hand on."""
        self._try(lambda view: view.close())

    def _try(self, show: Callable[[Live], None]) -> None:
        if self._view is not None:
            try:
                show(self._view)
            except Exception:
                self._view = None


class Several:
    """Hands on to several watchers; one that fails is left out."""

    def __init__(self, *views: Live) -> None:
        self._views = [FaultTolerantView(view) for view in views]

    def starting(self, what: str, seconds: float) -> None:
        """Hand on."""
        for view in self._views:
            view.starting(what, seconds)

    def say(self, message: str) -> None:
        """Hand on."""
        for view in self._views:
            view.say(message)

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """Hand on."""
        for view in self._views:
            view.update(spool_state, now_ns)

    def close(self) -> None:
        """Hand on."""
        for view in self._views:
            view.close()


class NullView:
    """Watches a wave in silence."""

    def say(self, message: str) -> None:
        """Say nothing."""

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Nothing to close."""
