"""The memory of a process that computes on large waves."""

from __future__ import annotations

from contextlib import suppress

_M_MMAP_THRESHOLD = -3  # malloc.h of the GNU C library
_LARGE = 1 << 20


def give_back_large_blocks() -> None:
    """Have the C library give a block of 1 MiB or more back to the system as soon as it is freed.

    By itself it takes a freed block as a sign that more of that size will come and keeps them, up to 32 MiB each: a
    column of a million requests has eight. Where there is another C library nothing changes.
    """
    import ctypes  # not for a command's help

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
