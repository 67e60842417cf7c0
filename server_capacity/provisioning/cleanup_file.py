"""``cleanup.json``: what must be put back, on disk before it is changed, and held by one process at a time.

The file is acted upon, so it is read only where this user alone can have written it, and where it was written: a copy
of one, unpacked from somebody's archive, lies beside another lock. A lock's inode and the instant it was made at are
nobody's to choose, so a file that names them was made beside it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from inference_benchmarker.data.digest import KEY, digest_of, require_digest
from inference_benchmarker.data.json_file import UNREADABLE, foreign
from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.engine.processes.child_logs import hidden
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import OWNER_ONLY, kind_of, open_file, replacing
from inference_benchmarker.system.host import birth_ns
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import MIB
from server_capacity.provisioning.undo import undo_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from server_capacity.provisioning.undo import Undo

NAME, LOCK = "cleanup.json", "cleanup.lock"
OF_FILE = "processes of "
"""What an entry of the processes of a factories file is called before that file."""
MOST_BYTES = 4 * MIB
MOST_REASON = 500
ROOM_BYTES = 4096
"""So much is kept free for each entry: what became of it, and a reason whose letters JSON writes as six bytes each."""

_MOST = f"{MOST_BYTES // MIB} MiB"
_PAUSE_S = 0.05
_ELSEWHERE = "Give an --output-dir on a disk of this machine."

State = Literal["held", "undone", "gone", "refused", "unknown"]
"""``held``: to be undone. ``gone``: somebody took away what it was of. ``refused``: the change was never made.

``unknown``: the processes of an endpoint_factory ended, but it did not end well and reported nothing that removes what
it made, which may still exist.
"""


class HeldError(BenchmarkError):
    """Another process holds the file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: ``what`` it is of, and its undo. ``account`` of AWS in which it was made, None: not known.

    Instants are texts in UTC; ``reason`` says why the last attempt failed, or why an endpoint_factory did not end well.
    """

    what: str
    undo: Undo
    account: str | None
    noted_at: str
    state: State = "held"
    settled_at: str | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file, with the line by which a person undoes it."""
        return {
            "what": self.what,
            "state": self.state,
            "noted_at": self.noted_at,
            "settled_at": self.settled_at,
            "reason": self.reason,
            "account": self.account,
            "undo": self.undo.to_json(),
            "by_hand": self.undo.by_hand,
        }

    @classmethod
    def of(cls, data: dict[str, Any]) -> Self:
        """The entry of its JSON; one of ``UNREADABLE`` for what this tool does not write."""
        state, account = data["state"], data["account"]
        if state not in get_args(State) or not isinstance(account, str | None):
            raise ValueError("an entry has a state and an account")
        what, noted_at = one_line(str(data["what"]), 200), str(data["noted_at"])
        return cls(what, undo_of(data["undo"]), account, noted_at, state, data["settled_at"], data["reason"])


class CleanupFile:
    """The file of a folder in the hands of the process that holds its lock; several threads may write to it.

    ``lock``: the descriptor. The file stays held until every process that inherited it has ended.
    """

    def __init__(self, folder: Path, entries: list[Entry], lock: int) -> None:
        self.folder = folder
        self.entries = entries
        self.lock = lock
        self._writing = threading.Lock()

    @classmethod
    @contextmanager
    def taken(cls, folder: Path, patience_s: float = 0.0) -> Iterator[Self]:
        """The file, which need not exist yet. HeldError where another process has it, BenchmarkError as ``read``.

        ``patience_s``: so long another process is waited for.
        """
        with _locked(folder, patience_s) as lock:
            there = kind_of(folder / NAME) is not None
            yield cls(folder, read(folder) if there else [], lock)

    def hold(self, what: str, undo: Undo, account: str | None) -> int:
        """Write down what is about to be changed; it is on disk, to be read again, when its number is returned.

        BenchmarkError where it cannot be, and OSError; what was held before is held still.
        """
        with self._writing:
            self.entries.append(Entry(what, undo, account, _now()))
            try:
                self._write(ROOM_BYTES * len(self.entries))
                read(self.folder)  # as where every file belongs to everybody it cannot be
            except BaseException:
                self.entries.pop()
                with suppress(OSError, BenchmarkError):
                    self._write()
                raise
            return len(self.entries) - 1

    def conclude(self, number: int, state: State, reason: str | None = None) -> None:
        """Nothing is left to do for this entry; ``reason``: what went wrong all the same."""
        self._renew(number, state=state, settled_at=_now(), reason=None if reason is None else _clean(reason))

    def fail(self, number: int, reason: str) -> None:
        """An attempt to undo it failed; it stays held."""
        self._renew(number, reason=_clean(reason))

    def _renew(self, number: int, **changed: Any) -> None:
        with self._writing:
            self.entries[number] = replace(self.entries[number], **changed)
            self._write()

    def _write(self, room: int = 0) -> None:
        """Replace the file. BenchmarkError where so many bytes more would make it too large."""
        who = {"user": os.geteuid(), "host": socket.gethostname(), "process": os.getpid(), "started_by": os.getppid()}
        entries = [entry.to_json() for entry in self.entries]
        data = {"schema_version": SCHEMA_VERSION, "who": who, "lock": _identity(self.folder), "entries": entries}
        content = json.dumps({**data, KEY: digest_of(data)}, indent=2).encode()
        if len(content) + room > MOST_BYTES:
            raise BenchmarkError(f"{self.folder / NAME}: has no room for it; all undos together take {_MOST} at most.")
        with replacing(self.folder / NAME, mode=OWNER_ONLY) as file:
            file.write(content)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(folder: Path) -> list[Entry]:
    """The entries of a folder's file. BenchmarkError for one that is another's, was copied, or is not as ours are."""
    path = folder / NAME
    try:
        with open_file(path) as file:
            _check_owner(path, os.fstat(file.fileno()))
            data = parse_json(file.read(MOST_BYTES + 1)[:MOST_BYTES])
        require_digest(data)  # an earlier version wrote none
        entries = [Entry.of(each) for each in data["entries"]]
        if data["lock"] != _identity(folder):
            raise BenchmarkError(
                f"{path}: was not written where it lies, or its lock was changed, so none of it is run.",
                "If you recognise the file, the lines under by_hand in it undo the changes by hand.",
            )
    except (OSError, *UNREADABLE) as error:
        raise foreign(path, error) from None
    return entries


def left_in(entries: list[Entry]) -> list[int]:
    """The numbers of the entries that are still to be undone, the last change first."""
    return [number for number in reversed(range(len(entries))) if entries[number].state == "held"]


def unknown_in(entries: list[Entry]) -> list[int]:
    """The numbers of those of which nobody can tell whether what was made still exists."""
    return [number for number, entry in enumerate(entries) if entry.state == "unknown"]


def _clean(reason: str) -> str:
    return one_line(hidden()(reason), MOST_REASON)


def _check_owner(path: Path, status: os.stat_result) -> None:
    """Refuse commands that somebody else may have written."""
    if status.st_uid != os.geteuid():
        raise BenchmarkError(f"{path}: belongs to another user, so none of it is run.", "Its owner can clean it.")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BenchmarkError(
            f"{path}: can be written by others, so none of it is run.",
            "If what it holds is yours, `chmod go-w` it and try again.",
        )


def _identity(folder: Path) -> dict[str, int]:
    """The inode of the folder's lock, and when it was made, which nobody can set."""
    path = folder / LOCK
    status = path.lstat()
    born_ns = birth_ns(path)
    return {"inode": status.st_ino, "made_ns": status.st_ctime_ns if born_ns is None else born_ns}


@contextmanager
def _locked(folder: Path, patience_s: float) -> Iterator[int]:
    path = folder / LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_ONLY)
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be opened ({error.strerror}).", _ELSEWHERE) from None
    try:
        deadline = time.monotonic() + patience_s
        while not _is_locked(lock, path):
            if time.monotonic() >= deadline:
                raise HeldError(f"{folder}: a running process holds {NAME} and restores what is in it.")
            time.sleep(_PAUSE_S)
        yield lock
    finally:
        os.close(lock)


def _is_locked(lock: int, path: Path) -> bool:
    """Tells whether it is ours now. BenchmarkError where the disk knows no locks."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be locked ({error.strerror}).", _ELSEWHERE) from None
    return True


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
