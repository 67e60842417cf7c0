"""Files that a user named, to be read: links are followed, and what is no file is refused."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from io import FileIO
from typing import TYPE_CHECKING

from inference_benchmarker.system.files import refuse_kind, too_large
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

MOST_SOURCE = 16 * MIB
"""Bytes of a file of Python."""
_PIPE_S = 10.0
_TO_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY  # a pipe without a writer holds nobody up


def resolved(path: Path) -> Path:
    """The path without links; as it stands where they lead in a circle, which whoever opens it reports."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a RuntimeError up to Python 3.12
        return path.absolute()


def descriptor_of(path: Path) -> int:
    """A file that the user named, opened to read; OSError for a pipe or a device, which may have no end."""
    descriptor = os.open(path, _TO_READ)
    try:
        refuse_kind(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_source(path: Path) -> bytes:
    """The content of a file of Python that the user named; OSError for what is none, or is too large for one."""
    with FileIO(descriptor_of(path)) as file:
        return _content(file, MOST_SOURCE)


def read_given(path: Path, most: int) -> bytes:
    """The content of a file that the user named: links are followed, and a pipe is read for some seconds."""
    with FileIO(os.open(path, _TO_READ)) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISFIFO(mode):
            refuse_kind(mode)
        return _content(file, most)


def _content(file: FileIO, most: int) -> bytes:
    data, deadline = bytearray(), time.monotonic() + _PIPE_S
    while piece := _piece(file, deadline):
        data += piece
        if len(data) > most:
            raise too_large(most)
    return bytes(data)


def _piece(file: FileIO, deadline: float) -> bytes:
    """The bytes that come next; empty at the end, and of a pipe that nobody writes to."""
    while (piece := file.read(MIB)) is None:
        if time.monotonic() >= deadline:
            raise OSError(errno.ETIMEDOUT, f"is a pipe that brought no end within {_PIPE_S:g} s")
        select.select([file], [], [], max(deadline - time.monotonic(), 0.0))
    return piece
