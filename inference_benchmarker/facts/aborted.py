"""The reason for which a wave was ended before its plan's end, by itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.abort_on import AbortOn


@dataclass(frozen=True, slots=True)
class Aborted:
    """A fact about the last seconds of a wave, for which it was ended.

    ``condition``: the ``--abort-on`` that was met; empty where the endpoint was dead, or a worker took all memory.
    ``measured``: its value, a share or seconds, or the worker's bytes; None for a dead endpoint. ``requests``: the
    number that it follows from. ``over_s``: how many seconds. ``worker``: the number of the one that took all memory.
    """

    condition: str
    measured: float | None
    requests: int
    over_s: int
    worker: int | None = None

    @property
    def by_dead_endpoint(self) -> bool:
        """Tells whether no connection to the endpoint stood."""
        return not self.condition and self.worker is None

    def __post_init__(self) -> None:
        """ValueError for what ends no wave: it may come from a file of anybody's."""
        known = _is_written(self.condition) and (self.measured is None) == self.by_dead_endpoint
        if not known or (self.condition and self.worker is not None):
            raise ValueError("aborted has no condition that a plan could have, or no value of it")


def _is_written(condition: str) -> bool:
    try:
        return not condition or bool(AbortOn.parse(condition))
    except BenchmarkError:
        return False
