"""The words of `benchmark endpoints`: its help, and that of each of its commands."""

from __future__ import annotations

ENDPOINTS_HELP = """\
usage: benchmark endpoints clean [DIR]

Endpoints that other commands change or make for a while.

  clean   put back and remove what commands left that were killed together with their keepers

Each has --help.
"""
CLEAN_DESCRIPTION = """\
Puts back what commands changed, and removes the endpoints that they made, where they left it so, as they were killed
together with the keeper that does it else: each undo stands in the cleanup.json of their folder. Asks nothing; a second
time there is nothing to do.
"""
CLEAN_EPILOG = """\
exit codes: 0 nothing is left, 1 something could not be put back (how to do so by hand is printed), or a process that
            runs holds it, 2 a cleanup.json that cannot be trusted, 130 interrupted
"""
