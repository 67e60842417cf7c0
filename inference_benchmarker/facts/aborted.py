"""The reason for which a wave was ended before its plan's end, by itself. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from inference_benchmarker.data.typed import require
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.abort_on import AbortOn


@dataclass(frozen=True, slots=True)
class Aborted:
    """A fact about the last seconds of a wave, for which it was ended.

    ``condition``: the ``--abort-on`` that was met; empty where the endpoint was dead, or a worker took all memory.
    ``measured``: its value, a share or seconds, or the worker's bytes; None for a dead endpoint. ``requests``: the
    number that it was told from. ``over_s``: how many seconds. ``worker``: the number of the one that took all memory.
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

    def to_json(self) -> dict[str, Any]:
        """The object that stands in the spool and in summary.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Aborted | None:
        """The value that ``to_json`` described; None for None. ValueError where it is neither: it may be anybody's."""
        if data is None:
            return None
        require(data, dict[str, Any], "aborted")
        if {"worker", *data} != {each.name for each in fields(cls)}:  # an older version had no worker
            raise ValueError(f"aborted has the members {', '.join(data) or 'of nothing'}")
        aborted = cls(**data)
        require(aborted, cls, "aborted")
        told = _is_written(aborted.condition) and (aborted.measured is None) == aborted.by_dead_endpoint
        if not told or (aborted.condition and aborted.worker is not None):
            raise ValueError("aborted has no condition that a plan could have, or no value of it")
        return aborted


def _is_written(condition: str) -> bool:
    try:
        return not condition or bool(AbortOn.parse(condition))
    except BenchmarkError:
        return False
