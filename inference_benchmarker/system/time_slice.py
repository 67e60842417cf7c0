"""When the kernel lets this process run: a worker right after it wakes, the primary after the workers.

Since Linux 6.12 a process may ask for its slice (``sched_attr.sched_runtime``); one with a shorter slice has an earlier
deadline, and so runs before those that are busy (EEVDF). Over time each gets as much of the CPU as before.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

SHORT_NS = 100_000
"""The shortest slice that the kernel grants."""
_SET, _GET = {"x86_64": (314, 315), "aarch64": (274, 275)}.get(platform.machine(), (0, 0))
_ATTR = struct.Struct("=IIQiIQQQII")  # size, policy, flags, nice, priority, runtime, deadline, period, two of clamping


def ask_for_short_slices() -> bool:
    """Ask for the shortest slice, and tell whether the kernel took it.

    A process that is not of the usual scheduling class asks for nothing.
    """
    if not sys.platform.startswith("linux") or not _SET or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTR.pack(_ATTR.size, os.SCHED_OTHER, 0, nice, 0, SHORT_NS, 0, 0, 0, 0)
    return not ctypes.CDLL(None).syscall(_SET, 0, ctypes.create_string_buffer(attributes), 0)


def give_way() -> bool:
    """Let processes that wake run before this one (SCHED_BATCH), and tell whether the kernel will; it gets as much CPU.

    So do its children. A process that is not of the usual scheduling class asks for nothing.
    """
    if not sys.platform.startswith("linux") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    return True


def slice_ns() -> int:
    """The slice that was asked for, in nanoseconds; 0 where the kernel does not say."""
    if not sys.platform.startswith("linux") or not _GET:
        return 0
    found = ctypes.create_string_buffer(_ATTR.size)
    failed = ctypes.CDLL(None).syscall(_GET, 0, found, _ATTR.size, 0)
    return 0 if failed else int(_ATTR.unpack(found.raw)[5])
