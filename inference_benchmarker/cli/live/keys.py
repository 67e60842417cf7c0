"""The keys of a terminal, one by one: set so while the wave runs, and as it was before in every case."""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import threading
import tty
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType

_MOST_BYTES = 1024
# An arrow or a function key is a sequence of characters, of which none was pressed: it counts as one key, and may come
# in two parts. An escape alone counts with the next key.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.)")
_BEGUN = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*|O)?$")


class Keys:
    """The keys that are pressed on a terminal, without echo and without waiting for the end of a line.

    A job that is suspended gives the terminal back as it was, and takes it again once it is in the foreground.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: list[Any] | None = None  # how the terminal was, while it is ours
        self._begun = ""
        self._gone = False
        self._suspended_by: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._suspended_by = signal.signal(signal.SIGTSTP, self._suspend)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back(termios.TCSAFLUSH)  # what was pressed too late is not for the shell
        if self._suspended_by is not None:
            signal.signal(signal.SIGTSTP, self._suspended_by)

    def pressed(self) -> str:
        """The keys since the last call; nothing while the job is in the background. EOFError: the terminal is gone."""
        if self._before is None:
            self._take()
        if self._gone:
            raise EOFError
        if self._before is None or not select.select([self._descriptor], [], [], 0)[0]:
            return ""
        try:
            data = os.read(self._descriptor, _MOST_BYTES)
        except OSError:
            data = b""
        self._gone = not data
        if self._gone:
            self._before = None
            raise EOFError
        keys = _SEQUENCE.sub("\0", self._begun + data.decode(errors="replace"))
        begun = _BEGUN.search(keys)
        self._begun = "" if begun is None else begun[0]
        return keys.removesuffix(self._begun)

    def _take(self) -> None:
        if self._gone or not self._in_foreground():
            return
        try:
            self._before = termios.tcgetattr(self._descriptor)
            tty.setcbreak(self._descriptor, termios.TCSANOW)
        except termios.error:
            self._gone, self._before = True, None

    def _give_back(self, when: int) -> None:
        before, self._before = self._before, None
        if before is not None:
            try:
                termios.tcsetattr(self._descriptor, when, before)
            except termios.error:
                self._gone = True

    def _in_foreground(self) -> bool:
        """Tells whether this job may change the terminal: another one would be stopped for it."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:  # it is not the terminal of this session: there are no jobs on it
            return True

    def _suspend(self, number: int, _frame: FrameType | None) -> None:
        self._give_back(termios.TCSANOW)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # here it stands until it is continued
        signal.signal(number, self._suspend)
