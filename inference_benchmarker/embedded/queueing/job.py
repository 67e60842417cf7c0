"""A request in the queueing model: when it came, began and ended, and what of its answer is still to come."""

from __future__ import annotations


class Job:
    """One accepted request: in service from ``start_ns`` up to ``finish_ns``, each None until it is reached.

    Its answer has ``pieces``, ``left`` of them still to come: piece j of n when (j + 1) / n of its service is done.
    """

    __slots__ = ("arrival_ns", "ends_at_work", "finish_ns", "frees", "left", "pieces", "service_ns", "start_ns")

    def __init__(self, arrival_ns: int, service_ns: int, pieces: int) -> None:
        self.arrival_ns = arrival_ns
        self.service_ns = service_ns
        self.pieces = self.left = pieces
        self.start_ns: int | None = None
        self.finish_ns: int | None = None
        # On the work clock.
        self.ends_at_work = 0
        # Whether its end frees a server: the end of a batch's last request does.
        self.frees = False

    @property
    def due_at_work(self) -> int:
        """When its next piece is ready, on the work clock."""
        return self.ends_at_work - self.service_ns * (self.left - 1) // self.pieces
