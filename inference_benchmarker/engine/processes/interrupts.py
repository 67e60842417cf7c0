"""Interrupts of a command: counted while its processes end, and held off until what began has ended."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from inference_benchmarker.engine.processes.children import INTERRUPTS
from inference_benchmarker.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


Found = TypeVar("Found")


@dataclass(slots=True)
class Interrupts:
    """A count of how often Ctrl-C (or SIGTERM, or the terminal's end) came."""

    count: int = 0

    def add(self, _number: int, _frame: FrameType | None) -> None:
        """Count one; the wave's loop acts on it."""
        self.count += 1


@contextmanager
def counting_interrupts() -> Iterator[Interrupts]:
    """Count interrupts instead of raising; outside the main thread signals are not ours to take.

    Within another such context it is the same count, so that none is lost between the two.
    """
    outer = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    interrupts = outer if isinstance(outer, Interrupts) else Interrupts()
    with _handling(interrupts.add):
        yield interrupts


def until_interrupted(act: Callable[[], list[Found]], interrupts: Interrupts | None = None) -> list[Found]:
    """The result of ``act``; nothing where KeyboardInterrupt ended it. To be called in a context that counts.

    While ``act`` runs an interrupt raises, and so does a second one; none does once it is over. ``interrupts`` counts
    those that raised.
    """
    found: list[Found] = []
    running = True

    def handle(*_: object) -> None:
        if running:
            if interrupts is not None:
                interrupts.count += 1
            raise Interrupted

    with _handling(handle):
        try:
            try:
                found = act()
            finally:
                running = False
        except KeyboardInterrupt:
            running = False
    return found


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = [number for number in INTERRUPTS if signal.getsignal(number) != signal.SIG_IGN]  # nohup, background jobs
    before = {number: signal.getsignal(number) for number in heeded}
    try:
        for number in heeded:
            signal.signal(number, handler)
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])
