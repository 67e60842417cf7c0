"""The processes that the user's code started and left behind: they would go on sending after the wave."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from inference_benchmarker.system.host import adopts_orphans, is_branded
from inference_benchmarker.system.procfs import not_measured, where_readable

if TYPE_CHECKING:
    from collections.abc import Collection

    import psutil

MARK = "BENCHMARK_WAVE"  # the variable by which a wave's processes, and all that they start, are recognised
PATIENCE_S = 0.5  # for those that end by themselves with the process that started them
ROUNDS = 20


def new_mark() -> str:
    """A value of ``MARK`` that no other wave has."""
    return secrets.token_hex(8)


def end_leftovers(
    mark: str, sessions: Collection[int], variable: str = MARK, *, astray: bool = False
) -> tuple[str, ...]:
    """End every process that carries the mark or is of these sessions; the names of those that were ended.

    ``variable``: of the environment, which holds the mark.

    One that left the session and cleared its environment is found where it is ``astray``: the process that would have
    adopted it is gone (see ``Orphans``), so it is looked for by its ``brand`` among all of the machine.

    To be called when our own processes have ended. Whoever starts others while it is being ended is met again
    in the next round.
    """
    if not_measured():
        return _end_groups(sessions)
    deadline = time.monotonic() + PATIENCE_S

    def look() -> list[psutil.Process]:
        return _found(mark, sessions, variable, astray=astray)

    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    names: dict[int, str] = {}  # by its id: one that takes its time to end is met more than once
    for _ in range(ROUNDS):
        if not found:
            break
        names |= {process.pid: name for process in found if (name := _end(process))}
        time.sleep(0.02)
        found = look()
    return tuple(names.values())


def _end_groups(sessions: Collection[int]) -> tuple[str, ...]:
    """End what is in the groups of our own processes, which have ended: all that can be reached without /proc."""
    ended = []
    for group in sessions:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
            ended.append("a process whose name is not known")
    return tuple(ended)


def end_descendants(pid: int) -> None:
    """End whatever a process of ours started, and what that did. ``adopt_orphans`` keeps those in reach."""
    import psutil

    for _ in range(ROUNDS):
        found: list[psutil.Process] = []
        with suppress(psutil.Error):
            found = [each for each in psutil.Process(pid).children(recursive=True) if _lives(each)]
        if not found:
            return
        for process in found:
            _end(process)
        time.sleep(0.02)


class Orphans:
    """The processes of a wave that came to this one when their own parents ended; see ``adopt_orphans``.

    ``mark``: that by which the wave's processes were given a ``brand``; what else this process adopts or starts, as
    other code in a notebook does, is left alone. ``own``: the ids of the wave's processes that this one itself
    started. Where it adopts none, there are none.
    """

    def __init__(self, mark: str) -> None:
        self._adopts = adopts_orphans()
        self._mark = mark

    def reap(self, own: Collection[int]) -> list[psutil.Process]:
        """Those that live. The ids of those that have ended are given back, which nobody else waits for."""
        living = []
        for pid, process in self._children().items():
            if pid in own or not is_branded(pid, self._mark):
                continue
            if _lives(process):
                living.append(process)
            else:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        return living

    def end(self, own: Collection[int]) -> tuple[str, ...]:
        """End them, and what they started; the names of those that were ended."""
        import psutil

        names: dict[int, str] = {}
        for _ in range(ROUNDS):
            if not (found := self.reap(own)):
                break
            with suppress(psutil.Error):
                found += [each for orphan in found for each in orphan.children(recursive=True)]
            names |= {process.pid: name for process in found if (name := _end(process))}
            time.sleep(0.02)
        return tuple(names.values())

    def _children(self) -> dict[int, psutil.Process]:
        if not self._adopts:
            return {}
        import psutil

        with suppress(psutil.Error):
            return {process.pid: process for process in psutil.Process().children()}
        return {}


def _lives(process: psutil.Process) -> bool:
    import psutil

    with suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _found(mark: str, sessions: Collection[int], variable: str, *, astray: bool) -> list[psutil.Process]:
    import psutil

    with where_readable():
        return [
            process
            for process in psutil.process_iter()
            if _belongs(process, mark, sessions, variable) or (astray and _is_astray(process, mark, variable))
        ]
    return []


def _is_astray(process: psutil.Process, mark: str, variable: str) -> bool:
    """Tells whether it has the mark's brand and no mark: two waves may have one brand, and each its own mark."""
    import psutil

    with suppress(psutil.Error, OSError):
        living = process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
        return living and is_branded(process.pid, mark) and variable not in process.environ()
    return False


def _belongs(process: psutil.Process, mark: str, sessions: Collection[int], variable: str) -> bool:
    import psutil

    if process.pid == os.getpid():
        return False
    with suppress(psutil.Error, OSError):
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return os.getsid(process.pid) in sessions or process.environ().get(variable) == mark
    return False


def _end(process: psutil.Process) -> str:
    """Its name; empty where it was gone already."""
    import psutil

    with suppress(psutil.Error):
        name = process.name()
        process.kill()
        return name
    return ""


def line_to_end_leftovers(mark: str) -> tuple[str, ...]:
    """The command line that ends what carries a mark, for whoever is still there when its command was killed."""
    return sys.executable, "-P", "-m", __name__, mark


if __name__ == "__main__":
    end_leftovers(sys.argv[1], (), astray=True)
