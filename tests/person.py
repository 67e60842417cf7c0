"""Somebody at a terminal."""

from __future__ import annotations

import os
import pty
import re
import threading
import time


class Person:
    """Presses keys at a terminal and sees what is shown there. ``slave`` is what a program has of it."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        self.slave = os.dup(slave)
        self.streams = {"stdin": slave, "stderr": slave}
        self._seen = bytearray()
        threading.Thread(target=self._look, daemon=True).start()

    @property
    def screen(self) -> str:
        """All that was shown, without what moves the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._seen.decode(errors="replace"))

    def seen_since(self, place: int) -> str:
        """The part of the screen's raw text that came after so many bytes."""
        return bytes(self._seen[place:]).decode(errors="replace")

    @property
    def place(self) -> int:
        """How many bytes were shown so far."""
        return len(self._seen)

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self.master, keys.encode())

    def leave(self) -> None:
        """Close the terminal."""
        os.close(self.slave)

    def _look(self) -> None:
        try:
            while data := os.read(self.master, 65536):
                self._seen += data
        except OSError:
            os.close(self.master)

    def see(self, text: str, timeout_s: float = 60) -> None:
        """Wait until something is shown."""
        deadline = time.monotonic() + timeout_s
        while text not in self.screen:
            assert time.monotonic() < deadline, f"{text!r} is not shown: {self.screen}"
            time.sleep(0.02)
