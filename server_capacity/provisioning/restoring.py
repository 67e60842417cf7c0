"""Undoes what a cleanup file holds, the last change first."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from server_capacity.provisioning.cleanup_file import left_in
from server_capacity.provisioning.performing import GoneError, NotDoneError, perform_undo
from server_capacity.provisioning.undo import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from server_capacity.provisioning.cleanup_file import CleanupFile, Entry

PATIENCE_S = 60.0
"""So long undoing goes on where it may yet succeed: a network that is away, a service that is busy."""

BUSY_S = 900.0
"""So long where a resource must be left alone first: SageMaker refuses to delete an endpoint that is being created."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0


def restore(
    cleanup: CleanupFile,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    *,
    busy_s: float = BUSY_S,
    of: Collection[int] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> bool:
    """Undo everything that is held; one that fails keeps none of the others from it. Tells whether nothing is left.

    Where the disk takes no more, an undo is made all the same, and made once more by whoever reads the file next.
    ``busy_s``: the patience with what is busy. ``of``: the numbers of the entries that are meant, None for all. ``say``
    gets what is waited for.
    """
    begun = clock()
    meant = [number for number in left_in(cleanup.entries) if of is None or number in of]
    for number in meant:
        pause = FIRST_PAUSE_S
        while failed := _attempt(cleanup, number):
            if failed.final or clock() + pause >= begun + (busy_s if failed.busy else patience_s):
                break
            if failed.busy and pause == FIRST_PAUSE_S:
                say(f"{cleanup.entries[number].what}: trying again for at most {busy_s / 60:.0f} min: {failed}.")
            sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
    return not any(cleanup.entries[number].state == "held" for number in meant)


def _attempt(cleanup: CleanupFile, number: int) -> NotDoneError | None:
    """One attempt, and why it brought nothing about."""
    entry = cleanup.entries[number]
    try:
        perform_undo(entry.undo, entry.account)
    except GoneError:
        with suppress(OSError):
            cleanup.conclude(number, "gone")
    except NotDoneError as error:
        with suppress(OSError):
            cleanup.fail(number, str(error))
        return error
    except Exception as error:  # a fault of ours must not keep the others from being undone
        with suppress(OSError):
            cleanup.fail(number, f"{type(error).__name__}: {error}")
    else:
        with suppress(OSError):
            cleanup.conclude(number, "undone")
    return None


def note_bad_end(cleanup: CleanupFile, number: int, trouble: str, reported: Collection[int], name: str = "") -> None:
    """Write down that an endpoint_factory did not end well, once its processes and all that it reported are undone.

    ``number``: of the entry of its processes. ``trouble``: a clause. ``reported``: the numbers of what ``created`` got.
    ``name``: of the endpoint that it made.
    """
    left = {cleanup.entries[each].state for each in reported}
    made = f" had made {name} and" if name else ""
    if not left:
        cleanup.conclude(number, "unknown", f"{trouble}; it{made} reported nothing with created()")
    else:
        removed = "" if "held" in left else "; everything that it reported with created() is removed"
        cleanup.conclude(number, "undone", f"{trouble}{removed}")


def outcome_text(entry: Entry) -> str:
    """A sentence on what became of an entry, with the line to be pasted where it is still held."""
    puts_back = isinstance(entry.undo, Call) and not entry.undo.removes
    if entry.state == "gone":
        return f"{entry.what}: is gone, so there is nothing to {'restore' if puts_back else 'remove'}."
    if entry.state == "held":
        reason = "it was not tried" if entry.reason is None else entry.reason
        done = "put back" if puts_back else "removed"
        return f"{entry.what}: could NOT be {done}: {reason}. By hand:\n  {entry.undo.by_hand}"
    if entry.state == "unknown":
        return f"{entry.what}: have ended, but the endpoint may still exist: {entry.reason}. Remove it by hand."
    return f"{entry.what}: is {'as it was before' if puts_back else 'removed'}."
