"""The instances of the embedded endpoint: how many serve, how many were asked for, and when these will serve. Pure."""

from __future__ import annotations


class Instances:
    """``current`` instances serve, ``desired`` were asked for last. Instants are ns, and never go backwards.

    New instances serve ``start_ns`` after they were asked for, all at once. Those that are to end take no further
    request from the moment on at which they were requested. As with SageMaker, nothing can be asked for meanwhile.
    """

    def __init__(self, count: int, start_ns: int) -> None:
        self.current = self.desired = count
        self._start_ns = start_ns
        self._due_ns = 0

    @property
    def updating(self) -> bool:
        """Tells whether what was asked for is yet to come."""
        return self.desired != self.current

    def ask(self, desired: int, now_ns: int) -> int:
        """Ask for that many, at least 1: the instant at which they are there. Not while ``updating``."""
        assert not self.updating
        self.desired = desired
        self._due_ns = now_ns + (self._start_ns if desired > self.current else 0)
        return self._due_ns

    def arrive(self, now_ns: int) -> bool:
        """Tells whether what was asked for is there since now, and lets it be."""
        if not self.updating or now_ns < self._due_ns:
            return False
        self.current = self.desired
        return True
