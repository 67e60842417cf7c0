"""The cost of a command: its time, and the most memory that it had."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from tests.performance.measure import REPOSITORY

# By a small process: a command that is started by a large one inherits the most memory that one had.
_MEASURE = """
import json, resource, subprocess, sys, time
begun = time.monotonic()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
took, used = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, took, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss]))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Exit code, wall and CPU seconds, and most memory in bytes."""

    code: int
    wall_s: float
    cpu_s: float
    most_bytes: int


def cost_of(*command: str) -> Cost:
    """That of a command of this repository's Python, run in a process of its own."""
    whole = [sys.executable, "-c", _MEASURE, *command]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(whole, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return Cost(*json.loads(done.stdout))
