"""The words of `benchmark endpoints`: its help, and that of each of its commands."""

from __future__ import annotations

ENDPOINTS_HELP = """\
usage: benchmark endpoints clean [DIR]

Manages endpoints that other commands change or create temporarily.

  clean   undo what killed commands left behind: endpoints, changed scaling

See `benchmark endpoints clean --help`.
"""
CLEAN_DESCRIPTION = """\
Undoes what a command changed, and removes the endpoints that it created, if the command and its keeper (a separate
process that normally does this) were both killed. The steps are in cleanup.json in the command's folder. Asks for no
confirmation; a second call has nothing to do.
"""
CLEAN_EPILOG = """\
exit codes: 0 nothing is left; 1 something could not be undone (the steps to do so by hand are printed), or a running
process holds it; 2 a cleanup.json that cannot be trusted; 130 interrupted
"""
