"""The exit codes of every command, and which of several counts.

``OK``: the wave is valid and every limit is met. ``MISSED``: the server missed a limit, or what was tried failed: a
request, a search that found no rate. ``BAD_INPUT``: nothing was sent. ``INVALID``: the client could not offer the load,
a process was lost, or the tool itself broke. ``INTERRUPTED``: after a report of what was measured.
"""

from __future__ import annotations

OK, MISSED, BAD_INPUT, INVALID, INTERRUPTED = 0, 1, 2, 3, 130
GRAVEST_FIRST = (BAD_INPUT, INTERRUPTED, INVALID, MISSED, OK)


def worst_exit_code(*codes: int | None) -> int:
    """The gravest of the exit codes.

    An unknown one is graver than all of these: a process that something killed (137, -9) says nothing of what it
    measured. None, where no code was stored, counts as INVALID.
    """
    return min((INVALID if code is None else code for code in codes), key=_gravity)


def _gravity(code: int) -> int:
    return GRAVEST_FIRST.index(code) if code in GRAVEST_FIRST else -1
