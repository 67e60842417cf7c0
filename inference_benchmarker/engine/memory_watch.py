"""Watches the memory of a wave's workers: the kernel would kill one that takes all, with its records."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from inference_benchmarker import procfs
from inference_benchmarker.verdict.aborts import LEAST_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AHEAD_S = 1.0  # what is used up so soon is used up: workers need a moment to end
HALF_S = 0.5
OWN_SHARE = 0.5  # of its part of it: a worker that holds less is not what took the rest


class MemoryWatch:
    """Holds what was free at the beginning. ``available``: the bytes that are free now; None where nobody tells."""

    def __init__(self, workers: int, available: Callable[[], int | None]) -> None:
        self._available = available
        self._room = available()
        self._workers = workers
        self._seen: deque[tuple[float, int]] = deque()

    def look(self, pids: Sequence[int], now_s: float) -> tuple[int, int] | None:
        """The number and the bytes of the worker that takes what is left; None while there is enough."""
        left = self._available()
        if self._room is None or left is None:
            return None
        if left > max(LEAST_MEMORY * self._room, AHEAD_S * self._taken_a_second(left, now_s)):
            return None
        sizes = [resident_bytes(pid) for pid in pids]
        largest = max(range(len(sizes)), key=sizes.__getitem__)
        return (largest, sizes[largest]) if sizes[largest] > OWN_SHARE * self._room / self._workers else None

    def _taken_a_second(self, left: int, now_s: float) -> float:
        """By which it became less in each of the last two half seconds: a jump, as of a large payload, is no growth."""
        self._seen.append((now_s, left))
        before = [self._left_at(now_s - 2 * HALF_S), self._left_at(now_s - HALF_S), left]
        while now_s - self._seen[0][0] > 3 * HALF_S:
            self._seen.popleft()
        return min((a - b) / HALF_S if a is not None and b is not None else 0.0 for a, b in pairwise(before))

    def _left_at(self, at_s: float) -> int | None:
        """The bytes that were left at an instant; None before the first look."""
        return next((left for seen_s, left in reversed(self._seen) if seen_s <= at_s), None)


def resident_bytes(pid: int) -> int:
    """The bytes of memory that a process holds; 0 of one that has ended."""
    import psutil  # not for a command's help

    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def available_bytes() -> int | None:
    """The bytes that are free: of the host's memory, or of this process's cgroup, whichever is less."""
    import psutil

    try:
        free = int(psutil.virtual_memory().available)
    except (OSError, psutil.Error):
        return None
    limited = procfs.cgroup_memory_left()
    return free if limited is None else min(free, limited)
