"""The requests of our processes to their host: their end with their parent, descriptors, loopback, orphans, births."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import socket
import struct
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 1, 36, 37
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, _STATX_BYTES = -100, 0x100, 0x800, 256
LOOPBACK = "127.0.0.1"
_LOOPBACK_S = 2.0  # the kernel alone answers, at once
_PLENTY = 1 << 20  # stands for "no limit"


def die_with_parent(parent: int) -> None:
    """Be killed by the kernel when the parent dies (Linux); elsewhere the end of standard input must do.

    ``parent`` is the process id the parent passed on, to notice if it died before this call.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def raise_descriptor_limit() -> int:
    """Raise this process's soft limit of open files as far as it may; returns the limit that holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS names a hard limit that it does not grant
        hard = soft
    return _PLENTY if hard == resource.RLIM_INFINITY else hard


def loopback_problems() -> list[str]:
    """A problem where this host cannot reach itself on 127.0.0.1, by a connection to a listener of its own."""
    no_port = errno.EADDRINUSE
    try:
        with socket.create_server((LOOPBACK, 0)) as listener:
            no_port = errno.EADDRNOTAVAIL
            socket.create_connection(listener.getsockname(), _LOOPBACK_S).close()
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, no_port):  # descriptors and ports are counted elsewhere
            return []
        reason = error.strerror or f"no connection within {_LOOPBACK_S:g} s"
        return [
            f"The loopback interface (lo) is down, or a firewall closes it: this host cannot reach itself on "
            f"{LOOPBACK} ({reason}), where the processes of a wave meet. As root, `ip link set lo up` brings it up."
        ]
    return []


def usable_cores() -> int:
    """The number of cores this process may use: fewer than there are in many containers."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """The memory of this host."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def adopt_orphans(*, adopt: bool = True) -> None:
    """Become the parent of each descendant whose own parent ends (Linux), or no longer; else the first process does."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """``adopt_orphans`` for as long as this lasts, in a process that may be a user's own: a notebook, a script.

    It adopts what other code there leaves behind, too: see ``is_branded``.
    """
    adopted = adopts_orphans()
    adopt_orphans()
    try:
        yield
    finally:
        adopt_orphans(adopt=adopted)


def adopts_orphans() -> bool:
    """Tells whether this process is the parent of its descendants' orphans."""
    if not sys.platform.startswith("linux"):
        return False
    adopts = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(adopts), 0, 0, 0)
    return bool(adopts.value)


def brand(mark: str) -> None:
    """Mark this process, and whatever it will start, by what nobody else has or takes away (Linux).

    A daemon leaves its parent, its session and its environment. Its limits it keeps, through every fork and exec: that
    of message queues, which next to nobody uses, is lowered by a few KiB, a number that comes of the mark.
    """
    if sys.platform.startswith("linux"):
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (_branded(mark), resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]))


def is_branded(pid: int, mark: str) -> bool:
    """Tells whether a process comes of a child of this one that was given a ``brand``, alive or not yet waited for."""
    if sys.platform.startswith("linux"):
        with suppress(OSError):
            return resource.prlimit(pid, resource.RLIMIT_MSGQUEUE)[0] == _branded(mark)
    return False


def _branded(mark: str) -> int:
    soft = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[0] if sys.platform.startswith("linux") else 0
    return max((_PLENTY if soft == resource.RLIM_INFINITY else soft) - 1 - int(mark[:4], 16), 0)


def birth_ns(path: Path) -> int | None:
    """The instant at which a file was made, in nanoseconds since 1970; None where the file system does not keep it.

    No call sets it. A change of its mode, times or links leaves it alone. See statx(2).
    """
    if not sys.platform.startswith("linux"):
        born = getattr(path.lstat(), "st_birthtime", None)
        return None if born is None else int(born * 1e9)
    found = ctypes.create_string_buffer(_STATX_BYTES)
    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None or statx(_AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, found):
        return None
    (mask,) = struct.unpack_from("=I", found)
    seconds, nanoseconds = struct.unpack_from("=qI", found, 80)
    return seconds * 10**9 + nanoseconds if mask & _STATX_BTIME else None
