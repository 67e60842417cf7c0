"""A timer that wakes an event loop at an absolute instant of CLOCK_MONOTONIC.

Event loops hand whole milliseconds to epoll; a timerfd is a file descriptor that becomes readable at the
nanosecond it was armed for, so any loop that watches descriptors can keep time to some tens of microseconds.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

from inference_benchmarker.words.units import NS

_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


class TimerFd:
    """One absolute timer; ``fileno()`` is readable from the armed instant until it is armed again."""

    available = sys.platform.startswith("linux")

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._settime = self._libc.timerfd_settime
        self._spec = _Itimerspec()
        self._value = self._spec.it_value
        self._reference = ctypes.byref(self._spec)
        self._fd = int(self._libc.timerfd_create(time.CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")

    def fileno(self) -> int:
        """The descriptor to watch for reading."""
        return self._fd

    def arm(self, monotonic_ns: int) -> None:
        """Fire at an instant of ``time.monotonic_ns()``; at once if it has passed. Replaces what was armed."""
        self._value.tv_sec, self._value.tv_nsec = divmod(max(monotonic_ns, 1), NS)
        if self._settime(self._fd, _TFD_TIMER_ABSTIME, self._reference, None) < 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime failed")

    def disarm(self) -> None:
        """Do not fire until armed again."""
        self._value.tv_sec = self._value.tv_nsec = 0
        self._settime(self._fd, _TFD_TIMER_ABSTIME, self._reference, None)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)
