"""Undoes what a cleanup file holds, the last change first."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from inference_benchmarker.text import one_line
from server_capacity.keeper.cleanup_file import left_in
from server_capacity.keeper.performing import GoneError, NotDoneError, perform_undo

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.keeper.cleanup_file import CleanupFile, Entry

PATIENCE_S = 60.0
"""So long undoing goes on where it may yet succeed: a network that is away, a service that is busy."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0


def put_back(
    cleanup: CleanupFile,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Undo everything that is held; one that fails keeps none of the others from it. Tells whether nothing is left.

    Where the disk takes no more, an undo is made all the same, and made once more by whoever reads the file next.
    """
    deadline = clock() + patience_s
    for number in left_in(cleanup.entries):
        pause = FIRST_PAUSE_S
        while not _undone(cleanup, number) and clock() + pause < deadline:
            sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
    return not left_in(cleanup.entries)


def _undone(cleanup: CleanupFile, number: int) -> bool:
    """One attempt; true also where another is of no use."""
    entry = cleanup.entries[number]
    with suppress(OSError):
        try:
            perform_undo(entry.undo, entry.account)
        except GoneError:
            cleanup.conclude(number, "gone")
        except NotDoneError as error:
            cleanup.fail(number, str(error))
            return error.final
        except Exception as error:  # a fault of ours must not keep the others from being undone
            cleanup.fail(number, one_line(f"{type(error).__name__}: {error}", 300))
        else:
            cleanup.conclude(number, "undone")
    return True


def told(entry: Entry) -> str:
    """A sentence on what became of an entry, with the line to be pasted where it is still held."""
    if entry.state == "gone":
        return f"{entry.what}: is gone, so nothing is left to put back."
    if entry.state == "held":
        reason = "it was not tried" if entry.reason is None else entry.reason
        return f"{entry.what}: could NOT be put back: {reason}. By hand:\n  {entry.undo.by_hand}"
    return f"{entry.what}: is as it was before."
