"""The memory of a process that computes on large waves."""

from __future__ import annotations

import os
from contextlib import suppress

_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1  # malloc.h of the GNU C library
_LARGE = 1 << 22  # a column of a part is a quarter as large
_KEPT = 1 << 25


def give_back_large_blocks() -> None:
    """Have the C library give a block of 4 MiB or more back to the system as soon as it is freed.

    By itself it takes a freed block as a sign that more of that size will come and keeps them, up to 32 MiB each.
    Smaller ones, which are the columns of a part, are made again and again: of them it keeps 32 MiB, as each page that
    the system gives anew costs more than what is computed on it. Where there is another C library nothing changes.

    Arrow has allocators of its own, which keep more: unless the environment names one, it takes this library's, too.
    Only what is loaded later listens to that.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    import ctypes  # not for a command's help

    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT)
