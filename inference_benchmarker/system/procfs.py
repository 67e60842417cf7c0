"""Reads what Linux reports of the host and of this process's cgroup.

None, or nothing, where a file or a number is not there: on macOS, in a sandbox, or because it vanished. ``root`` is
where the file system begins.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path("/")
_IDLE = (3, 4)  # idle and iowait, among the columns of a line of /proc/stat
_STEAL = 7
_UNLIMITED = 1 << 60  # version 1 writes nearly 2**63 where there is no limit, version 2 the word max
# of version 2 and of version 1: the limit, what is used, and what of it are a file's pages that can be had at once
_MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def read(path: Path) -> str | None:
    """The text of a file."""
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return None


def not_measured(root: Path = ROOT) -> str | None:
    """The reason why Linux reports nothing of this host and its processes; None where it reports, or is none."""
    if not sys.platform.startswith("linux") or read(root / "proc/stat") is not None:
        return None
    return "/proc is hidden or not mounted"


@contextmanager
def where_readable() -> Iterator[None]:
    """Leave the block where psutil cannot tell: a process has ended, or there is no /proc, which it relies on."""
    import psutil  # not for a command's help

    with suppress(psutil.Error, OSError, LookupError):
        yield


def integers(path: Path) -> list[int]:
    """The numbers of a file that holds nothing else; empty if it does not."""
    try:
        return [int(word) for word in (read(path) or "").split()]
    except ValueError:
        return []


def port_range(root: Path = ROOT) -> range | None:
    """The local ports that the kernel gives to outgoing connections."""
    ends = integers(root / "proc/sys/net/ipv4/ip_local_port_range")
    return range(ends[0], ends[1] + 1) if len(ends) == 2 else None


def tcp_in_use(root: Path = ROOT) -> int | None:
    """TCP sockets of IPv4 and IPv6, those in TIME_WAIT not counted."""
    by_version = (_sockets(root, "sockstat", "TCP", "inuse"), _sockets(root, "sockstat6", "TCP6", "inuse"))
    found = [count for count in by_version if count is not None]
    return sum(found) if found else None


def time_wait(root: Path = ROOT) -> int | None:
    """TCP sockets in TIME_WAIT, of IPv4 and IPv6."""
    return _sockets(root, "sockstat", "TCP", "tw")


def cpu_seconds(cores: set[int], root: Path = ROOT) -> tuple[float, float | None] | None:
    """The time that these cores were busy since the system started, and the time stolen by other guests.

    Stolen time is no busy time here. The times of guests of our own are part of user time.
    """
    lines = [line for line in (read(root / "proc/stat") or "").splitlines() if line.startswith("cpu")]
    if len(cores) < len(lines) - 1:
        lines = [line for line in lines[1:] if int(line.split()[0].removeprefix("cpu")) in cores]
    else:  # the first line is of all cores, and there may be hundreds
        lines = lines[:1]
    if not lines:
        return None
    times = [[int(word) for word in line.split()[1:]] for line in lines]
    ticks = os.sysconf("SC_CLK_TCK")
    busy = sum(sum(of_core[:_STEAL]) - sum(of_core[column] for column in _IDLE) for of_core in times)
    steal = sum(of_core[_STEAL] for of_core in times) / ticks if len(times[0]) > _STEAL else None
    return busy / ticks, steal


class Throttling:
    """The time that CPU limits held back this process's cgroup, and those around it."""

    def __init__(self, root: Path = ROOT) -> None:
        files = [place / "cpu.stat" for place in _cgroup(root, "cpu")]
        self._files = [file for file in files if _throttled_s(read(file) or "") is not None]

    def seconds(self) -> float | None:
        """Since the cgroup was made, added up over the cores that were held back. None where it is unknown."""
        found = [seconds for file in self._files if (seconds := _throttled_s(read(file) or "")) is not None]
        return sum(found) if found else None


def cgroup_memory_left(root: Path = ROOT) -> int | None:
    """The bytes that this process's cgroup, and those around it, may still take. None where none is limited.

    Pages of files that were not used lately count as free, as the kernel takes them back first.
    """
    left = [_memory_left(folder) for folder in _cgroup(root, "memory")]
    return min((each for each in left if each is not None), default=None)


def _memory_left(folder: Path) -> int | None:
    for limit, used, inactive in _MEMORY_FILES:
        most, taken = integers(folder / limit), integers(folder / used)
        if most and taken and most[0] < _UNLIMITED:
            stat = dict(line.split(maxsplit=1) for line in (read(folder / "memory.stat") or "").splitlines())
            return max(most[0] - taken[0] + int(stat.get(inactive, 0)), 0)
    return None


def _cgroup(root: Path, controller: str) -> list[Path]:
    """The folder of this process's cgroup that limits CPU or memory, then the folders around it, up to the mount."""
    places = _cgroup_places(read(root / "proc/self/cgroup") or "", read(root / "proc/self/mountinfo") or "", controller)
    return [root / place.relative_to("/") for place in places]


def _cgroup_places(cgroup: str, mountinfo: str, controller: str) -> list[PurePosixPath]:
    """The same without the file system.

    ``cgroup`` has lines of ``id:controllers:path``; version 1 where a line names the controller, else version 2,
    whose line names none. A mount's line is ``id parent device root place options... - type source options``.
    """
    paths = {names: path for _, names, path in (line.split(":", 2) for line in cgroup.splitlines())}
    v1 = next((path for names, path in paths.items() if controller in names.split(",")), None)
    path = PurePosixPath(v1 or paths.get("", "/"))
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        mount, place = (PurePosixPath(word) for word in before.split()[3:5])
        kind, *_, options = after.split()
        if (kind == "cgroup" and controller in options.split(",")) if v1 else kind == "cgroup2":
            inside = path.relative_to(mount) if path.is_relative_to(mount) else PurePosixPath()
            folder = place / inside
            return [folder, *(parent for parent in folder.parents if parent.is_relative_to(place))]
    return []


def _throttled_s(stat: str) -> float | None:
    """``throttled_usec`` of version 2 or ``throttled_time``, in ns, of version 1."""
    for line in stat.splitlines():
        match line.split():
            case ["throttled_usec", value]:
                return int(value) / 1e6
            case ["throttled_time", value]:
                return int(value) / 1e9
    return None


def _sockets(root: Path, name: str, protocol: str, key: str) -> int | None:
    """A count of /proc/net/sockstat, whose lines are like ``TCP: inuse 4 orphan 0 tw 2``."""
    for line in (read(root / "proc/net" / name) or "").splitlines():
        first, _, rest = line.partition(":")
        words = rest.split()
        if first == protocol and key in words[:-1]:
            return int(words[words.index(key) + 1])
    return None
