"""Ties a child process to its parent: when the parent is gone, the child does not stay behind."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Be killed by the kernel when the parent dies (Linux); elsewhere the end of standard input must do.

    ``parent`` is the process id the parent passed on, to notice if it died before this call.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
