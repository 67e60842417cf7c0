"""Watches the memory of a host's workers: the kernel would kill one that takes all, with its records."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from inference_benchmarker.verdict.aborts import LEAST_MEMORY

if TYPE_CHECKING:
    from collections.abc import Sequence

AHEAD_S = 1.0  # what is used up so soon is used up: workers need a moment to end
HALF_S = 0.5
OWN_SHARE = 0.5  # of its part of it: a worker that holds less is not what took the rest


class HasMemory(Protocol):
    """The memory of a host, as ``Host`` tells it."""

    @property
    def workers(self) -> Sequence[int]:
        """The numbers of its workers."""

    def memory_left(self) -> int | None:
        """The bytes that are free; None where it is unknown."""

    def memory_of(self, worker: int) -> int:
        """The bytes that a worker holds; 0 of one that has ended."""


class MemoryForecast:
    """Holds what was free on a host at the beginning."""

    def __init__(self, host: HasMemory) -> None:
        self._host = host
        self._room = host.memory_left()
        self._seen: deque[tuple[float, int]] = deque()

    def look(self, now_s: float) -> tuple[int, int] | None:
        """The number and the bytes of the worker that takes what is left; None while there is enough."""
        left = self._host.memory_left()
        if self._room is None:  # a host that is far away tells later
            self._room = left
        if self._room is None or left is None:
            return None
        if left > max(LEAST_MEMORY * self._room, AHEAD_S * self._taken_a_second(left, now_s)):
            return None
        sizes = {worker: self._host.memory_of(worker) for worker in self._host.workers}
        largest = max(sizes, key=sizes.__getitem__)
        return (largest, sizes[largest]) if sizes[largest] > OWN_SHARE * self._room / len(sizes) else None

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
