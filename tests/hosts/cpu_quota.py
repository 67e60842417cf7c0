"""A limit on the CPU time of a host, by the control groups of either version."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from tests.hosts.errors import LabError

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
_PATIENCE_S = 5.0


def _groups() -> Path:
    return _ROOT if (_ROOT / "cgroup.controllers").exists() else _ROOT / "cpu"


class CpuQuota:
    """The group ``name``, whose processes get ``cpus`` cores' worth of time together. Raises LabError."""

    def __init__(self, name: str, cpus: float) -> None:
        self._folder = _groups() / name
        quota = round(cpus * _PERIOD_US)
        try:
            self._folder.mkdir()
            if _groups() == _ROOT:
                (_ROOT / "cgroup.subtree_control").write_text("+cpu")
                (self._folder / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
            else:
                (self._folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                (self._folder / "cpu.cfs_quota_us").write_text(str(quota))
        except OSError as error:
            raise LabError(f"no CPU quota can be set here: {error}") from error

    @property
    def joining(self) -> tuple[str, ...]:
        """The words before a command that put it into the group."""
        return ("sh", "-c", f'echo $$ >{self._folder / "cgroup.procs"} && exec "$@"', "sh")

    def remove(self) -> None:
        """Remove the group as soon as its last process is gone."""
        remove_group(self._folder)


def remove_group(folder: Path) -> None:
    """Remove an empty group; a process that is being killed may hold it for a moment."""
    last = time.monotonic() + _PATIENCE_S
    while folder.exists():
        with suppress(OSError):
            folder.rmdir()
            return
        if time.monotonic() > last:
            raise LabError(f"{folder} has processes still")
        time.sleep(0.01)


def remove_groups(prefix: str) -> None:
    """Remove the groups of a laboratory that is dead."""
    for folder in _groups().glob(f"{prefix}*"):
        remove_group(folder)
