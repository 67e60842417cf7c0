"""A byte pipe between the command and another host's agent: it carries lines of JSON, whatever the pipe is made of."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol

Message = dict[str, Any]
Said = Callable[[], Message]
"""Makes a message at the moment at which it is written: a time stamp in it is as close to the wire as it can be."""

_READ = 1 << 16
LONGEST = 1 << 26  # bytes of a line: a plan is far shorter, and what has no end is no message
_LONGEST_NOISE = 1 << 16


class Transport(Protocol):
    """The way to an agent and back. What comes is handed to whoever ``start`` was given, on a thread of its own.

    ``mend``: what brings this version there, where the agent is of another one.
    """

    mend: str

    def start(self, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        """Open the way. ``take``: each message, and when it came (monotonic, ns); ``on_end``: once there are no more.

        Nothing waits for the other side; what cannot be opened is an end at once.
        """

    def send(self, message: Message | Said) -> None:
        """Send a message, sooner or later; on a way that is closed it is lost."""

    def lead_here(self, path: str) -> str | None:
        """Have a Unix socket at this path there lead to one here, once the other side has spoken.

        Waits for it; the reason, in a sentence without its end, where there is none.
        """

    def knock(self, path: str, on_answer: Callable[[], None]) -> None:
        """Touch a file there over a way beside this one, which is silent; ``on_answer``: once that is done.

        Nothing waits for it. Who does not hear an answer may knock again; ``close`` ends all that.
        """

    def words(self) -> list[str]:
        """The last lines that the way itself has printed, which say why it is closed."""

    def close(self, patience_s: float) -> None:
        """Close the way, at the latest after so many seconds."""


class Speaking(Protocol):
    """An agent's side of the way, whatever it is made of."""

    def start(self, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        """Begin to hear and to speak; see ``Transport``."""

    def send(self, message: Message | Said) -> None:
        """Have a message sent after those before it, and none before ``start``."""

    def end(self, patience_s: float) -> None:
        """Send what is left, for so many seconds at the most, and close the way out."""


class NoMessageError(Exception):
    """A line was no message."""


class Lines:
    """Lines of JSON over two descriptors, which it owns: a thread reads and stamps, another one writes.

    So nobody who sends waits for a pipe that is full, as behind a link that is cut. Lines before the one that begins
    with ``marker`` are noise; without a marker there is none.
    """

    def __init__(self, reading: int, writing: int, marker: str = "") -> None:
        self._reading, self._writing = reading, writing
        self._marker = marker.encode()
        self._to_send: SimpleQueue[Message | Said | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="lines-out", daemon=True)

    def start(self, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        """Begin to read and to write; see ``Transport``."""
        self._writer.start()
        threading.Thread(target=self._read_all, args=(take, on_end), name="lines-in", daemon=True).start()

    def send(self, message: Message | Said) -> None:
        """Have a message written after those before it."""
        self._to_send.put(message)

    def end(self, patience_s: float) -> None:
        """Write what is left, for so many seconds at the most, and close the way out."""
        self._to_send.put(None)
        self._writer.join(patience_s)

    def _write_all(self) -> None:
        with suppress(OSError):  # the other side is gone; its end is seen by what is read
            while (message := self._to_send.get()) is not None:
                said = message() if callable(message) else message
                _write(self._writing, json.dumps(said).encode() + b"\n")
        with suppress(OSError):
            os.close(self._writing)

    def _read_all(self, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        pending = bytearray()
        with suppress(OSError, NoMessageError):  # what speaks otherwise is no agent: it is as if it had ended
            while data := os.read(self._reading, _READ):
                now = time.monotonic_ns()
                *lines, rest = data.split(b"\n")
                for line in lines:
                    if message := self._message_in(bytes(pending + line)):
                        take(parsed(message), now)
                    pending.clear()
                pending += rest
                self._bound(pending)
        on_end()
        os.close(self._reading)

    def _bound(self, pending: bytearray) -> None:
        """A line without an end fills no memory: of noise the end is kept, and a message is none."""
        if self._marker:
            del pending[:-_LONGEST_NOISE]
        elif len(pending) > LONGEST:
            raise NoMessageError

    def _message_in(self, line: bytes) -> bytes:
        """The message of a line; nothing where it is noise."""
        if not self._marker:
            return line
        _, found, message = line.partition(self._marker)
        if found:
            self._marker = b""
        return message


def parsed(line: bytes) -> Message:
    """The message of a line. NoMessageError where it is none."""
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise NoMessageError from None
    if not isinstance(message, dict):
        raise NoMessageError
    return message


def _refuse(constant: str) -> None:
    """NaN and the infinities, which no JSON has and which are in no bounds."""
    raise ValueError(constant)


def in_command(marker: str) -> str:
    """A marker as a command line has it, from which the other side takes the ``-`` out.

    Else a host that prints the command line itself (a router, a restricted shell) would seem to answer.
    """
    return f"{marker[:4]}-{marker[4:]}"


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
