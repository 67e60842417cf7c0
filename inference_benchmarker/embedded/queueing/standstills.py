"""When all servers stand still: in stalls that somebody asks for, and in the pauses that recur."""

from __future__ import annotations

from inference_benchmarker.embedded.queueing.work_clock import NEVER


class Standstills:
    """All servers stand still before ``until_ns``. Pauses recur every ``every_ns``; 0: there are none.

    ``due_ns``: the next instant at which a pause begins or everything goes on.
    """

    def __init__(self, every_ns: int, pause_ns: int) -> None:
        self.until_ns = 0
        self.due_ns = NEVER
        self._every_ns = every_ns
        self._pause_ns = pause_ns
        self._pause_at = NEVER

    def open(self, now_ns: int) -> None:
        """The first request is there: pauses count from now on."""
        if self._every_ns:
            self._pause_at = now_ns + self._every_ns
            self._look_ahead(now_ns)

    def stall(self, now_ns: int, length_ns: int) -> None:
        """Stand still from now for that long; what goes beyond the end of another standstill is added to it."""
        self.until_ns = max(self.until_ns, now_ns + length_ns)
        self._look_ahead(now_ns)

    def happen(self, now_ns: int) -> None:
        """Do what is due: begin a pause, or go on."""
        if now_ns >= self._pause_at:
            self.until_ns = max(self.until_ns, now_ns + self._pause_ns)
            self._pause_at += self._every_ns
        self._look_ahead(now_ns)

    def skip(self, now_ns: int) -> None:
        """While nobody is there, only the last pause before now matters: those before it have ended."""
        if self._pause_at < now_ns:
            self._pause_at += (now_ns - self._pause_at) // self._every_ns * self._every_ns
            self._look_ahead(self.until_ns)

    def _look_ahead(self, now_ns: int) -> None:
        self.due_ns = min(self._pause_at, self.until_ns) if now_ns < self.until_ns else self._pause_at
