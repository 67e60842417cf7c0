"""The output of a wave's processes on its way to their logs: secrets are hidden before a byte of it touches a disk."""

from __future__ import annotations

import os
import selectors
import sys
import threading
import time
from codecs import getincrementaldecoder
from collections import deque
from contextlib import contextmanager, suppress
from io import FileIO
from typing import TYPE_CHECKING

from inference_benchmarker.system.files import open_to_add
from inference_benchmarker.words.redact import MOST_UNDECIDED, decided, own_secrets, redact
from inference_benchmarker.words.text import plain_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

LONGEST_LINE = 64 * 1024  # bytes; of a longer line this much is kept
MOST_KEPT = 16 << 20  # bytes of a log's beginning; a program that prints for hours must not fill the disk
LAST_KEPT = 256 << 10  # and of what was printed after it: the last, written when the process has ended
CLOSING_S = 1.0  # how long the words of processes that have ended are waited for
_READ = 256 * 1024
_PIPE_BYTES = 1 << 20  # Linux: what fits in before a process that prints must wait for us
_F_SETPIPE_SZ = 1031
_FULL = b"(more is printed; of that a log keeps the end, which is written here when the process has ended)\n"
_LONGER = "… (the line is longer)"
_WORDS = 40  # lines that are remembered as a process's last words


class ChildLogs:
    """Owns a pipe and a log for each process; one thread takes what they print.

    No log has a secret of the environment, nor one of ``also``. A log that cannot be written is given up; its
    pipe is read on, since a process whose pipe is full would stand still.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        self._secrets = _secrets(also)
        self._selector = selectors.DefaultSelector()
        self._logs: dict[Path, _Log] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._take_all, name="child-logs", daemon=True)

    def pipe_to(self, log: Path) -> int:
        """The end of a new pipe for a process to print to; the caller closes it once the process has it."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        if sys.platform == "linux":
            import fcntl

            with suppress(OSError):  # this user's pipes may hold no more
                fcntl.fcntl(writer, _F_SETPIPE_SZ, _PIPE_BYTES)
        self._logs[log] = _Log(log, self._secrets)
        self._selector.register(reader, selectors.EVENT_READ, self._logs[log])
        return writer

    def start(self) -> None:
        """Begin to take; every pipe must have been made."""
        self._thread.start()

    def words(self, log: Path) -> list[str]:
        """The last lines that were printed to a log so far."""
        return self._logs[log].words()

    def last_words(self, log: Path) -> list[str]:
        """The last lines that were printed to a log, when the process has ended."""
        self._logs[log].over.wait(CLOSING_S)
        return self.words(log)

    def close(self) -> None:
        """Take what is left and end; a process of the user's that holds a pipe open is not waited for."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()
        for key in list(self._selector.get_map().values()):
            self._end(key)
        self._selector.close()

    def _take_all(self) -> None:
        deadline = float("inf")
        while self._selector.get_map() and time.monotonic() < deadline:
            if self._closing.is_set():
                deadline = min(deadline, time.monotonic() + CLOSING_S)
            for key, _ in self._selector.select(timeout=0.05):
                self._take(key)

    def _take(self, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, _READ)
        except BlockingIOError:
            return
        if data:
            key.data.take(data)
        else:
            self._end(key)

    def _end(self, key: selectors.SelectorKey) -> None:
        self._selector.unregister(key.fd)
        os.close(key.fd)
        key.data.close()


def hidden(also: Iterable[str] = ()) -> Callable[[str], str]:
    """The function that hides secrets in what processes print: this process's, ``also``, and credentials by form."""
    every = _secrets(also)
    return lambda text: redact(text, every)


class HiddenLines:
    """Lines that are passed on one by one as they are said, hidden as in the whole of them.

    A line waits while what it may begin of a secret goes on in the next one, and is given with that.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        self._secrets = _secrets(also)
        self._pending = ""

    def after(self, line: str) -> list[str]:
        """The lines that are decided now that this one is said."""
        self._pending += f"{line}\n"
        size = decided(self._pending, self._secrets)
        return self._given(size if len(self._pending) - size <= MOST_UNDECIDED else len(self._pending))

    def rest(self) -> list[str]:
        """The lines that waited, when nothing follows them."""
        return self._given(len(self._pending))

    def _given(self, size: int) -> list[str]:
        lines, self._pending = self._pending[:size], self._pending[size:]
        return redact(lines, self._secrets).splitlines()


def _secrets(also: Iterable[str]) -> tuple[str, ...]:
    return (*own_secrets(with_numbers=True), *also)


@contextmanager
def child_log(log: Path, also: Iterable[str] = ()) -> Iterator[int]:
    """The pipe to the log of a single process, which is to have ended when the block does; ``also``: see above."""
    logs = ChildLogs(also)
    writer = logs.pipe_to(log)
    logs.start()
    try:
        yield writer
    finally:
        os.close(writer)
        logs.close()


class _Log:
    """One process's log: whole lines, cleaned, and the last of them in memory. Of very many, the first and the last.

    However the pieces fall in which it is printed, the log has what it would have of all in one: lines with what may be
    the beginning of a secret wait until that is decided, which it is at the end.
    """

    def __init__(self, path: Path, secrets: tuple[str, ...]) -> None:
        self._secrets = secrets
        self._file = FileIO(open_to_add(path), "a")
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""
        self._in_long_line = False
        self._left = MOST_KEPT
        self._beyond = 0
        self._last = ""
        self._words: deque[str] = deque(maxlen=_WORDS)
        self.over = threading.Event()

    def words(self) -> list[str]:
        """The last lines so far."""
        lately = self._cleaned(self._end_of_last(LONGEST_LINE)).split("\n")
        return [line[:500] for line in (*self._words, *lately) if line.strip()][-_WORDS:]

    def take(self, data: bytes) -> None:
        """Take what was printed; a line is written when it is whole, and no secret can go on behind it."""
        self._pending += self._decode(data)
        if b"\n" in data:
            self._put(self._decided())
        if len(self._pending) - self._pending.rfind("\n") > LONGEST_LINE + MOST_UNDECIDED:
            self._put_long_line()

    def close(self) -> None:
        """Write what waits, and a last line without its end."""
        self._pending += self._decode(b"", True)
        self._put(len(self._pending))
        self._write_last()
        self._file.close()
        self.over.set()

    def _decided(self) -> int:
        """The number of pending characters that may be written: of more than any secret takes, all lines."""
        whole, end = self._pending.rfind("\n") + 1, decided(self._pending, self._secrets)
        return end if whole - end <= MOST_UNDECIDED else whole

    def _put(self, size: int) -> None:
        """Write so many of the pending characters."""
        lines, self._pending = self._pending[:size], self._pending[size:]
        if not self._left and not self._in_long_line:
            self._keep_last(lines)
        elif lines:
            clean = self._cleaned(lines)
            self._write(clean.partition("\n")[2] if self._in_long_line else clean)
            self._in_long_line = False

    def _put_long_line(self) -> None:
        """Write the beginning of a line that is too long. Its end is looked at only: a secret may begin there."""
        if not self._left:
            self._put(len(self._pending))
            return
        before, newline, line = self._plain(self._pending).rpartition("\n")
        if not self._in_long_line or newline:
            shown = line[: max(len(line) - MOST_UNDECIDED, 0)][:LONGEST_LINE] + _LONGER
            before = before.partition("\n")[2] if self._in_long_line else before
            self._write(_cut(before) + newline + shown)
        self._pending, self._in_long_line = self._pending[-MOST_UNDECIDED:], True

    def _cleaned(self, text: str) -> str:
        return _cut(self._plain(text))

    def _plain(self, text: str) -> str:
        """A text without secrets and what breaks a line or a terminal."""
        return plain_lines(redact(text, self._secrets).replace("\r\n", "\n").replace("\r", "\n"))

    def _write(self, text: str) -> None:
        """Write lines as far as the log is not full, and keep the rest of them."""
        if text and not text.endswith("\n"):
            text += "\n"
        self._words.extend(line for line in text.split("\n")[-2 * _WORDS :] if line.strip())
        data = text.encode(errors="replace")
        if len(data) > self._left:
            first = data[: self._left].rpartition(b"\n")[0]
            data, rest = (first + b"\n" if first else b"") + _FULL, data[len(first) :].removeprefix(b"\n")
            self._keep_last(rest.decode())
            self._left = 0
        try:
            self._file.write(data)
            self._left = max(self._left - len(data), 0)
        except OSError:
            self._left = 0

    def _keep_last(self, text: str) -> None:
        """Hold the end of what is no longer written; it is cleaned when it is."""
        self._beyond += len(text)
        self._last = (self._last + text)[-LAST_KEPT - MOST_UNDECIDED :]

    def _end_of_last(self, most: int) -> str:
        """About so many of the last characters, from a line on at which no secret is under way."""
        text = self._last
        if len(text) <= most:
            return text
        start = decided(text[: text.find("\n", len(text) - most - 1) + 1], self._secrets)
        return text[start:] if start or self._beyond == len(text) else ""

    def _write_last(self) -> None:
        """Write the end of what came after the log was full."""
        if not self._last:
            return
        last = self._end_of_last(LAST_KEPT)
        left_out = self._beyond - len(last)
        shown = f"({left_out:,} characters are left out here)\n" if left_out else ""
        text = shown + self._cleaned(last.removesuffix("\n")) + "\n"
        with suppress(OSError):
            self._file.write(text.encode(errors="replace"))


def _cut(text: str) -> str:
    """The text with lines of a bounded length."""
    lines = text.split("\n")
    return "\n".join(line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + _LONGER for line in lines)
