"""The requests of our processes to their host: an end with their parent, and as many descriptors as they may have."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PLENTY = 1 << 20  # stands for "no limit"


def die_with_parent(parent: int) -> None:
    """Be killed by the kernel when the parent dies (Linux); elsewhere the end of standard input must do.

    ``parent`` is the process id the parent passed on, to notice if it died before this call.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def raise_descriptor_limit() -> int:
    """Raise this process's soft limit of open files as far as it may; returns the limit that holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS names a hard limit that it does not grant
        hard = soft
    return _PLENTY if hard == resource.RLIM_INFINITY else hard


def usable_cores() -> int:
    """The number of cores this process may use: fewer than there are in many containers."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
