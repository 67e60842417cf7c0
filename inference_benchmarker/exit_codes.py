"""The exit codes of every command, and which of several counts.

``OK``: the wave is valid and every limit is met. ``MISSED``: the server missed a limit, or what was tried failed: a
request, a search that found no rate. ``BAD_INPUT``: nothing was sent. ``INVALID``: the client could not offer the load,
a process was lost, or the tool itself broke. ``INTERRUPTED``: after a report of what was measured.
"""

from __future__ import annotations

OK, MISSED, BAD_INPUT, INVALID, INTERRUPTED = 0, 1, 2, 3, 130
GRAVEST_FIRST = (BAD_INPUT, INTERRUPTED, INVALID, MISSED, OK)


def worst_exit_code(*codes: int) -> int:
    """The gravest of the exit codes."""
    return min(codes, key=GRAVEST_FIRST.index)
