"""What networks of the tests share on this machine: each has a number of its own, and a dead process leaves nothing."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hosts.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUN = Path("/run")  # a short path: those of Unix sockets end at about 100 bytes


@contextmanager
def claiming() -> Iterator[None]:
    """While no other process makes a network, or removes one whose process is dead."""
    lock = os.open(RUN, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def claimed(prefix: str, subnet: str, remove: Callable[[Path], None]) -> Path:
    """The folder of a new network, whose number no other one has. Those whose process is dead are removed first."""
    with claiming():
        for folder in RUN.glob(f"{prefix}[0-9]*"):
            if not lives(folder / "owner"):
                remove(folder)
        routes = subprocess.run(
            ["ip", "-4", "route", "show", "table", "all"], capture_output=True, text=True, check=True
        )
        taken = {int(number) for number in re.findall(rf"\b{re.escape(subnet)}\.(\d+)\.", routes.stdout)}
        for number in range(1, 255):
            folder = RUN / f"{prefix}{number}"
            if number not in taken and not folder.exists():
                folder.mkdir()
                (folder / "owner").write_text(identity(os.getpid()))
                return folder
    raise LabError(f"no network of {subnet}.0.0/16 is free")


def identity(pid: int) -> str:
    """The process's number and the instant of its start: a number alone may have come round again."""
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{pid} {started}"


def lives(file: Path) -> bool:
    """Tells whether the process runs whose identity stands in the file."""
    with suppress(OSError, IndexError):
        written = file.read_text()
        return written == identity(int(written.split()[0]))
    return False


def ip(*commands: str) -> None:
    """Do these with one call of ip. Raises LabError."""
    text = "".join(f"{command}\n" for command in commands)
    done = subprocess.run(["ip", "-batch", "-"], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"no network can be made here: {done.stderr.strip()}")
