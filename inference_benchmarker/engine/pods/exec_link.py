"""A connection to the attendant of a wave in its pod: ``kubectl exec``, whose lines are messages."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.transport import Lines
from inference_benchmarker.engine.pods.terms import BEAT_S, PROGRAM, SILENT_S
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from inference_benchmarker.engine.hosts.transport import Message
    from inference_benchmarker.engine.pods.kubectl import Kubectl

_END_S = 1.0  # that kubectl gets to end by itself
_LONGEST = 1 << 16
_WORDS = 300


class ExecLink:
    """Open from the beginning; what cannot be opened ends at once, and ``words`` says why."""

    def __init__(self, kubectl: Kubectl, pod: str) -> None:
        self._heard: SimpleQueue[Message | None] = SimpleQueue()
        self._heard_at = self._beaten_at = time.monotonic()
        self._words = b""
        (their_input, writing), (reading, their_output) = os.pipe(), os.pipe()
        try:
            # In a session of its own: Ctrl-C is this process's to hear.
            self._process = subprocess.Popen(
                kubectl.in_container(pod, PROGRAM),
                stdin=their_input,
                stdout=their_output,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        finally:
            os.close(their_input)
            os.close(their_output)
        self._reading = threading.Thread(target=self._read_words, args=(self._process.stderr,), daemon=True)
        self._reading.start()
        self._lines = Lines(reading, writing)
        self._lines.start(lambda message, _: self._heard.put(message), lambda: self._heard.put(None))

    @property
    def words(self) -> str:
        """The last line that kubectl printed."""
        self._reading.join(_END_S)
        return said(self._words.decode(errors="replace").strip(), _WORDS).rstrip(".")

    def send(self, message: Message) -> None:
        """Say something; what is said on a way that is closed is lost."""
        self._lines.send(message)

    def next(self, wait_s: float, on_end: Callable[[], None]) -> Message | None:
        """The next message; None where none came meanwhile. ``on_end``: called where there are no more."""
        now = time.monotonic()
        if now >= self._beaten_at + BEAT_S:
            self._beaten_at = now
            self.send({"do": "beat"})
        try:
            message = self._heard.get(timeout=wait_s)
        except Empty:
            if now > self._heard_at + SILENT_S:
                on_end()
            return None
        self._heard_at = time.monotonic()
        if message is None:
            on_end()
        return message

    def close(self) -> None:
        """End it."""
        self._lines.end(0.0)
        for end in (self._process.terminate, self._process.kill):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
                return
            end()
        self._process.wait()

    def _read_words(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        with stream, suppress(OSError, ValueError):
            while line := stream.readline(_LONGEST):
                if line.strip():
                    self._words = line
