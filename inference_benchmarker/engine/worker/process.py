"""A worker as a process: what it hears of its parent, its descriptors, and the connections that a fork of it has."""

from __future__ import annotations

import faulthandler
import os
import signal
import stat
import traceback
from socket import AF_INET, AF_INET6
from typing import TYPE_CHECKING, BinaryIO

import gevent
from gevent.monkey import get_original

from inference_benchmarker.engine.worker.watch import open_descriptors
from inference_benchmarker.system.host import raise_descriptor_limit

if TYPE_CHECKING:
    from collections.abc import Iterable

SPARE_DESCRIPTORS = 16


def let_go_of_connections() -> None:
    """Put nothing in the place of every TCP connection that a forked process shares with its parent.

    An event that was pending at the fork would have it read an answer there, and the parent would wait for it in vain.
    """
    inherited = [number for number in _descriptors() if _is_connection(number)]
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in inherited:
        os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


def _descriptors() -> Iterable[int]:
    """The descriptors that are open; all that may be, where there is no /proc that tells."""
    try:
        return [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - numbers, no files
    except OSError:
        return range(raise_descriptor_limit())


def _is_connection(number: int) -> bool:
    """Tells whether a descriptor is a TCP connection of this process."""
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return False
        with get_original("socket", "socket")(fileno=os.dup(number)) as found:
            return found.family in (AF_INET, AF_INET6) and bool(found.getpeername())
    except OSError:  # it is closed, or connected to nobody
        return False


def free_descriptors() -> int:
    """The number of descriptors that are left for requests."""
    return max(1, raise_descriptor_limit() - open_descriptors() - SPARE_DESCRIPTORS)


def take_stdin() -> BinaryIO:
    """Takes what the parent says out of reach of the user's code, whose standard input is empty."""
    commands = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return commands


def end_with_parent(commands: BinaryIO) -> None:
    """Ends this process at once when its parent is gone, which closes ``commands``."""
    watcher = gevent.get_hub().loop.io(commands.fileno(), 1)
    watcher.start(os._exit, 1)


def tell_where_on_request() -> None:
    """SIGUSR1: print where the file that is being loaded is held up, computing or waiting."""
    loading = gevent.getcurrent()
    signal.signal(signal.SIGUSR1, lambda *_: traceback.print_stack(loading.gr_frame))
    faulthandler.register(signal.SIGUSR1, all_threads=False, chain=True)  # tells while no Python code can run
