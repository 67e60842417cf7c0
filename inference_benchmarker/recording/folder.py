"""The folder that a recording's copy is kept in until a wave takes it, and which goes with what reads it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_PREFIX = ".replay_"
_JUST_MADE_S = 10.0  # a folder that is younger may not be locked yet


class Rows:
    """The rows of a recording in a folder of their own, until a wave takes them; it goes with this object."""

    def __init__(self, folder: Path, lock: int | None) -> None:
        self.folder = folder
        weakref.finalize(self, _remove, folder, lock)

    def __deepcopy__(self, _: object) -> Self:
        return self

    @property
    def are_there(self) -> bool:
        """Tells whether no wave has taken them."""
        return self.folder.is_dir()

    def hand(self, folder: Path) -> None:
        """Let them go into a folder of the wave's; OSError where they cannot."""
        self.folder.rename(folder)


def in_a_folder(parent: Path, write: Callable[[Path], T]) -> tuple[T, Rows]:
    """Write something into a new folder below ``parent``: what that gives, and its handle; failures leave nothing."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_left(parent)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        lock = _locked(folder)
    except OSError as error:
        raise BenchmarkError(f"{parent}: cannot be written ({error.strerror}).", "Give --output-dir.") from None
    try:
        return write(folder), Rows(folder, lock)
    except BaseException:
        _remove(folder, lock)
        raise


def _locked(folder: Path) -> int | None:
    """A descriptor of the folder, which is locked until it is closed or this process ends; None where it cannot be."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody reads it, or the file system has no locks
        os.close(descriptor)
        return None
    return descriptor


def _remove(folder: Path, lock: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _remove_left(parent: Path) -> None:
    """Remove what a command that was killed while it read has left, with the payloads in it: nobody holds its lock."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.lstat().st_mtime > _JUST_MADE_S and (lock := _locked(folder)) is not None:
                _remove(folder, lock)
