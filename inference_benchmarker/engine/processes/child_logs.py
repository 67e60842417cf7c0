"""The output of a wave's processes on its way to their logs: secrets are hidden before a byte of it touches a disk."""

from __future__ import annotations

import os
import selectors
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from io import FileIO
from typing import TYPE_CHECKING

from inference_benchmarker.system.files import open_to_add
from inference_benchmarker.words.redact import own_secrets, redact
from inference_benchmarker.words.text import plain_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

LONGEST_LINE = 64 * 1024  # bytes; of a longer line this much is kept
MOST_KEPT = 16 << 20  # bytes of a log's beginning; a program that prints for hours must not fill the disk
LAST_KEPT = 256 << 10  # and of what was printed after it: the last, written when the process has ended
CLOSING_S = 1.0  # how long the words of processes that have ended are waited for
_BEYOND = 16 * 1024  # looked at beyond the longest line, so that no secret is cut into two visible halves
_READ = 256 * 1024
_PIPE_BYTES = 1 << 20  # Linux: what fits in before a process that prints must wait for us
_F_SETPIPE_SZ = 1031
_FULL = b"(more is printed; of that a log keeps the end, which is written here when the process has ended)\n"
_LONGER = "… (the line is longer)"
_BLOCK, _BLOCK_END = b"-----BEGIN ", b"-----END "
_WORDS = 40  # lines that are remembered as a process's last words


class ChildLogs:
    """Owns a pipe and a log for each process; one thread takes what they print.

    No log has a secret of the environment, nor one of ``also``. A log that cannot be written is given up; its
    pipe is read on, since a process whose pipe is full would stand still.
    """

    def __init__(self, also: Iterable[str] = ()) -> None:
        self._clean = hidden(also)
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
        self._logs[log] = _Log(log, self._clean)
        self._selector.register(reader, selectors.EVENT_READ, self._logs[log])
        return writer

    def start(self) -> None:
        """Begin to take; every pipe must have been made."""
        self._thread.start()

    def words(self, log: Path) -> list[str]:
        """The last lines that were printed to a log so far."""
        return list(self._logs[log].words)

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
    every = (*own_secrets(with_numbers=True), *also)
    return lambda text: redact(text, every)


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
    """One process's log: whole lines, cleaned, and the last of them in memory. Of very many, the first and the last."""

    def __init__(self, path: Path, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._file = FileIO(open_to_add(path), "a")
        self._pending = b""
        self._in_long_line = False
        self._left = MOST_KEPT
        self._beyond = 0
        self._last = b""
        self.words: deque[str] = deque(maxlen=_WORDS)
        self.over = threading.Event()

    def take(self, data: bytes) -> None:
        """Take what was printed; a line is written when it is whole."""
        whole, newline, rest = (self._pending + data).rpartition(b"\n")
        whole, held = _held_back(whole)
        self._pending = (held and held + b"\n") + rest
        if whole or (newline and not held):
            self._in_long_line, begun = False, self._in_long_line
            self._put(whole.partition(b"\n")[2] if begun else whole)
        if self._in_long_line:
            self._pending = b""
        elif len(rest) > LONGEST_LINE + _BEYOND:
            self._in_long_line, longest = True, self._pending
            self._pending = b""
            self._put(longest, beyond=_BEYOND)

    def close(self) -> None:
        """Write a last line without its end."""
        if self._pending:
            self._put(self._pending.removesuffix(b"\n"))
        self._write_last()
        self._file.close()
        self.over.set()

    def _put(self, lines: bytes, beyond: int = 0) -> None:
        """Write lines; of the last one the end is looked at only: it may hold the beginning of a secret."""
        if not self._left:
            self._keep_last(lines + b"\n")
            lines = lines[-_BEYOND:].partition(b"\n")[2]  # only its last words matter yet
        kept = self._cleaned(lines, beyond)
        self.words.extend(line[:500] for line in kept if line.strip())
        if self._left:
            self._write("".join(f"{line}\n" for line in kept).encode(errors="replace"))

    def _cleaned(self, lines: bytes, beyond: int = 0) -> list[str]:
        text = lines.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        clean = plain_lines(self._clean(text))
        kept = [_cut(line) for line in clean[: len(clean) - beyond].split("\n")]
        if beyond:
            kept[-1] = kept[-1].removesuffix(_LONGER) + _LONGER
        return kept

    def _write(self, data: bytes) -> None:
        if len(data) > self._left:
            first = data[: self._left].rpartition(b"\n")[0]
            data, rest = (first + b"\n" if first else b"") + _FULL, data[len(first) :].removeprefix(b"\n")
            self._keep_last(rest)
            self._left = 0
        try:
            self._file.write(data)
            self._left = max(self._left - len(data), 0)
        except OSError:
            self._left = 0

    def _keep_last(self, lines: bytes) -> None:
        """Hold the end of what is no longer written; it is cleaned when it is."""
        self._beyond += len(lines)
        self._last = (self._last + lines)[-LAST_KEPT:]

    def _write_last(self) -> None:
        """Write the end of what came after the log was full, from the first line of it that is certainly whole."""
        if not self._last:
            return
        last, cut = self._last, self._beyond > LAST_KEPT
        if cut:  # within a line, or within a key whose beginning would have told it for one
            begun, ended = last.find(_BLOCK), last.find(_BLOCK_END)
            last = last[ended if 0 <= ended < (begun if begun >= 0 else len(last)) else 0 :].partition(b"\n")[2]
        left_out = f"({self._beyond - len(last):,} bytes are left out here)\n" if cut else ""
        text = left_out + "".join(f"{line}\n" for line in self._cleaned(last.removesuffix(b"\n")))
        with suppress(OSError):
            self._file.write(text.encode(errors="replace"))


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + _LONGER


def _held_back(lines: bytes) -> tuple[bytes, bytes]:
    """The lines without a key block (PEM) that has not ended, and that block: line by line nobody knows it for one."""
    begin = lines.rfind(_BLOCK)
    if begin < 0 or _BLOCK_END in lines[begin:] or len(lines) - begin > LONGEST_LINE:
        return lines, b""
    return lines[:begin].removesuffix(b"\n"), lines[begin:]
