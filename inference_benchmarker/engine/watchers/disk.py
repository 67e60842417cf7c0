"""The disk of the run directory: the room that a wave needs is reckoned before it, and watched while it runs."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from inference_benchmarker.plan.disk_space import REPORTED_BYTES, room

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan

LEFT_S = 60.0  # of the disk, at its growth: less is said
SEEN_S = 60.0
BEGINNING_S = 10.0  # what is written in a shorter time does not show what a minute takes
_SPARE = 1.25


def free_bytes(path: Path) -> int | None:
    """The bytes that we may write where a path is, or will be; None where it is unknown."""
    try:
        existing = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
        disk = os.statvfs(existing)
    except (OSError, StopIteration):
        return None
    return disk.f_bavail * disk.f_frsize


def room_problems(plan: WavePlan, free: int | None) -> list[str]:
    """A problem where the disk certainly does not hold what the plan sends."""
    needed = room(plan)
    if free is None or needed is None or needed.least <= free:
        return []
    return [
        f"{plan.output_dir}: the wave needs about {_size(needed.likely)} of disk, {_size(free)} are free. Give another "
        f"place with --output-dir, count with --records none, or send less: {REPORTED_BYTES} bytes are written for "
        f"each of {needed.requests:,} requests, and as much as a third of it again when they are stored."
    ]


def room_warning(plan: WavePlan, free: int | None) -> str | None:
    """A sentence where the disk may not hold the wave."""
    needed = room(plan)
    if free is None or needed is None or _SPARE * needed.likely <= free:
        return None
    streams = "" if plan.counts_requests else ", more if answers are streams"
    return (
        f"{plan.output_dir}: the wave needs about {_size(needed.likely)} of disk{streams}; "
        f"{_size(free)} are free. It is stopped when the disk is full."
    )


class DiskForecast:
    """Follows the free bytes of a disk, and says once when they are less than a minute's growth."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: deque[tuple[float, int]] = deque()
        self._is_short = False

    def look(self, now_s: float, free: int | None, to_store: int = 0) -> str | None:
        """Take in the free bytes at a moment, of which storing takes some; a sentence where somebody should know."""
        if free is None:
            return None
        free -= to_store
        self._seen.append((now_s, free))
        while now_s - self._seen[0][0] > SEEN_S:
            self._seen.popleft()
        (begun, before), elapsed = self._seen[0], now_s - self._seen[0][0]
        if elapsed < BEGINNING_S or before <= free:
            return None
        growth = (before - free) / (now_s - begun)
        left_s = max(free, 0) / growth
        was_short, self._is_short = self._is_short, left_s < (2 * LEFT_S if self._is_short else LEFT_S)
        if was_short or not self._is_short:
            return None
        return (
            f"{self._name}: {_size(free + to_store)} of disk is free{_stored(to_store)}, and {_size(growth)} are "
            f"taken each second: at that rate it is full in about {left_s:.0f} s. A wave that still runs then cannot "
            "be stored there; it is stopped when the disk is full."
        )


def _stored(to_store: int) -> str:
    return f", {_size(to_store)} of them for the file that is stored in the end" if to_store else ""


def _size(count: float) -> str:
    """Bytes in the unit in which they are read: ``3.1 GB``, ``64 MB``."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:,.{0 if count >= 10 * factor and unit == 'MB' else 1}f} {unit}"
    return f"{count / 1e3:,.0f} kB"
