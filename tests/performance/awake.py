"""Keeps the cores from going to sleep, so that a process that waits most of the time does not wake up on a cold one.

A virtual core that has nothing to do is handed to others; what runs next on it finds caches and translations gone.
Loops of idle priority give way at once to whatever else wants the core.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# It ends with its standard input, so it never outlives the measurement.
_LOOP = """
import os, select, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while not select.select([0], [], [], 0)[0]:
    for _ in range(100_000): pass
"""


@contextmanager
def kept_awake() -> Iterator[None]:
    """A loop on each core until the block ends."""
    with ExitStack() as stack:
        for core in os.sched_getaffinity(0):
            command = [sys.executable, "-c", _LOOP, str(core)]
            loop = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
            assert loop.stdin is not None
            stack.callback(loop.stdin.close)
        yield
