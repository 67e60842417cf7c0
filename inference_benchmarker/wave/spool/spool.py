"""The spool: what a wave's primary wrote down so far, readable at every moment.

A file of frames, each with its length and checksum, so a reader never takes a half-written frame for a whole
one. Frames are events (JSON: the wave's start, a lost worker, its end) and the workers' record batches.
The writer locks the file, so a reader can tell a wave that runs from one that was cut off.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
import tempfile
import weakref
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.system.files import open_file, open_to_add, opened, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO

EVENT, BATCH = b"E", b"B"
STOP_ASKED, COMMAND_GONE, DISK_FULL, PLANNED, ABORTED = "asked", "command_gone", "disk_full", "planned", "aborted"
"""Why a wave was stopped: a person wanted it, nobody was left to lead it, or there was no place for its reports; it was
steered, and this was its end; or a condition of ``--abort-on`` was true, or its endpoint dead."""
_FRAME = struct.Struct("<4scII")  # magic, kind, length, crc32
_MAGIC = b"IBS1"
_CLOSED = -1
MOST_FRAME = 1 << 28
"""Bytes of a frame: a worker reports every second, so its batches are some megabytes at the most."""


class SpoolWriter:
    """Appends frames; when the disk is full it goes on in a file of the system's temporary folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: OSError | None = None
        self._fd = _open_locked(path)
        self._size = 0

    def event(self, **event: Any) -> None:
        """Append an event, a JSON object, without the values of secrets."""
        self._append(EVENT, without_secrets(json.dumps(event)))

    def batch(self, data: bytes) -> None:
        """Append a worker's packed batch, whose texts are redacted."""
        self._append(BATCH, data)

    def close(self) -> None:
        """Unlock and close; a second file that took nothing goes. What is appended later is an OSError."""
        os.close(self._fd)
        self._fd = _CLOSED
        if self.error is not None and not self._size:
            self.path.unlink(missing_ok=True)

    def _append(self, kind: bytes, data: bytes) -> None:
        if self._fd == _CLOSED:  # the number may be another file's by now
            raise OSError(errno.EBADF, "the spool is closed")
        if self.error is None and not os.fstat(self._fd).st_nlink:
            self._move_elsewhere(OSError(errno.ENOENT, "it was deleted"))
        frame = _FRAME.pack(_MAGIC, kind, len(data), _checksum(kind, data)) + data
        try:
            self._write(frame)
        except OSError as error:
            if self.error is not None:
                raise
            self._move_elsewhere(error)
            self._write(frame)

    def _write(self, frame: bytes) -> None:
        view = memoryview(frame)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            with suppress(OSError):  # a reader stops at a broken frame, so nothing may come after it
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(frame)

    def _move_elsewhere(self, error: OSError) -> None:
        """Go on in a second file; the first keeps its whole frames."""
        self.error = error
        number, name = tempfile.mkstemp(prefix="benchmark_spool_", suffix=".bin")
        os.close(number)
        os.close(self._fd)
        self.path = Path(name)
        self._fd, self._size = _open_locked(self.path), 0


class SpoolReader:
    """Reads frames as they are appended; ``frames()`` gives those that came since its last call.

    ``place``: where the frame that was given last begins, by which it can be read ``again``.
    ``size``: that of the file when it was last looked at.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None  # kept open: whoever deletes the file does not take it from us
        self._offset = 0
        self.place = self.size = 0

    def frames(self) -> Iterator[tuple[bytes, bytes]]:
        """Whole frames (kind, data) not yet given; stops at the first one that is damaged or incomplete."""
        try:
            file = self._file = self._file or open_file(self._path)
        except FileNotFoundError:
            return
        size = self.size = os.fstat(file.fileno()).st_size
        file.seek(self._offset)
        while head := file.read(_FRAME.size):
            if len(head) < _FRAME.size:
                return
            magic, kind, length, checksum = _FRAME.unpack(head)
            if magic != _MAGIC or length > MOST_FRAME or self._offset + _FRAME.size + length > size:
                return
            data = file.read(length)
            if _checksum(kind, data) != checksum:
                return
            self.place, self._offset = self._offset, self._offset + _FRAME.size + length
            yield kind, data

    def again(self) -> SpoolFrames | None:
        """The frames that were given, to be read again; None where there is no file."""
        return None if self._file is None else SpoolFrames(self._file.fileno())

    def close(self) -> None:
        """Nothing more is read."""
        if self._file is not None:
            self._file.close()


class SpoolFrames:
    """A spool's frames by their places. It is open as long as somebody has it, whoever closes or deletes it."""

    def __init__(self, descriptor: int) -> None:
        self._fd = os.dup(descriptor)
        weakref.finalize(self, os.close, self._fd)

    def data(self, place: int) -> bytes:
        """The data of a frame that a reader gave before; ValueError where it is another by now."""
        head = os.pread(self._fd, _FRAME.size, place)
        if len(head) == _FRAME.size:
            _, kind, length, checksum = _FRAME.unpack(head)
            data = os.pread(self._fd, min(length, MOST_FRAME), place + _FRAME.size)
            if _checksum(kind, data) == checksum:
                return data
        raise ValueError("a part of it that was whole is damaged")


def _checksum(kind: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(kind))


def is_locked(path: Path) -> bool:
    """Tells whether a primary still writes to this spool."""
    with opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _open_locked(path: Path) -> int:
    descriptor = open_to_add(path)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor
