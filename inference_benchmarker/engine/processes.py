"""The environment of the processes that this one starts, a line to them, and interrupts that are counted."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from inference_benchmarker.words.redact import ASKED_FOR, asked_for

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

REAP_S = 2.0

Found = TypeVar("Found")


@dataclass(slots=True)
class Interrupts:
    """A count of how often Ctrl-C (or SIGTERM, or the terminal's end) came."""

    count: int = 0

    def add(self, _number: int, _frame: FrameType | None) -> None:
        """Count one; the wave's loop acts on it."""
        self.count += 1


INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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

    def interrupt(*_: object) -> None:
        if running:
            if interrupts is not None:
                interrupts.count += 1
            raise KeyboardInterrupt

    with _handling(interrupt):
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


def note_asked_for(file: Path | None, shown: Iterable[str] = ()) -> None:
    """Name the variables that a user's file asks for: this process, and those that it starts, hide the keys in them.

    ``shown``: values that are told anyway, as those of ``plan.json`` are.
    """
    if file is not None:
        with suppress(OSError):
            source = file.read_text(encoding="utf-8", errors="replace")
            before = os.environ.get(ASKED_FOR, "").split(",")  # by a file of this process's last wave
            os.environ[ASKED_FOR] = ",".join(sorted({*before, *asked_for(source, os.environ, shown).split(",")} - {""}))


def child_environment() -> dict[str, str]:
    """The user's environment without what Locust would read from it; our package stays importable from a clone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    root = str(Path(__file__).resolve().parents[2])
    if not root.endswith("-packages"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), root)))
    return {**environment, "PYTHONUNBUFFERED": "1"}


def write_line(process: subprocess.Popen[bytes], line: str) -> None:
    """Send a process a line, if it is still there."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # its end is noticed elsewhere
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
