"""Tells whether work grows with its size or with the square of it, on a machine of any speed."""

from __future__ import annotations

import gc
from time import thread_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = 8
MOST = 24.0  # work that grows with the size takes 8 times as long, with its square 64 times


def grows_with_size(work: Callable[[int], object], small: int) -> bool:
    """Whether work of eight times the size takes about eight times the CPU time; the best of a few counts."""
    return _seconds(work, small * TIMES) < MOST * _seconds(work, small)


def _seconds(work: Callable[[int], object], size: int) -> float:
    gc.collect()
    gc.disable()
    try:
        found = []
        for _ in range(3):
            begun = thread_time()
            work(size)
            found.append(thread_time() - begun)
    finally:
        gc.enable()
    return min(found)
