"""An alarm clock in the hub: one absolute timerfd, watched at the highest priority.

gevent's own timers round up to whole milliseconds.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING

import gevent

from inference_benchmarker.system.timerfd import TimerFd

if TYPE_CHECKING:
    from collections.abc import Callable


class Alarm:
    """Calls back in the hub at an absolute instant, to some tens of microseconds where there is a timerfd."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        loop = gevent.get_hub().loop
        self._timer = TimerFd() if TimerFd.available else None
        self._at = 0
        self._left = False
        if self._timer is None:
            self._watcher = loop.timer(0.0)
        else:
            self._watcher = loop.io(self._timer.fileno(), 1, priority=loop.MAXPRI)
            self._watcher.start(callback)

    def arm(self, monotonic: int) -> None:
        """Call back at this instant of ``monotonic_ns()``, or at once if it has passed."""
        if self._left:
            return
        if self._timer is not None:
            self._timer.arm(monotonic)
            return
        self._at = monotonic
        self._watcher.stop()
        gevent.get_hub().loop.update_now()
        delay = max(0, monotonic - monotonic_ns()) / 1e9
        self._watcher = gevent.get_hub().loop.timer(delay)
        self._watcher.start(self._callback)

    def leave(self) -> None:
        """Call back no more in this process; its timer is another's, too, and stays as it is."""
        self._watcher.stop()
        self._left = True

    def stop(self) -> None:
        """Call back no more."""
        if self._timer is not None and not self._left:
            self._timer.disarm()
        self._watcher.stop()
