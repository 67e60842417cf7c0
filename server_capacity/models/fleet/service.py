"""One instance as the fleet has it: servers, the services that they draw, the time outside of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from inference_benchmarker.data.typed import require

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Service:
    """First come, first served by ``servers``; every answer takes ``overhead_s`` (seconds) outside of them.

    ``services_s``: seconds in a server, ascending, each as probable as the others. ``waiting``: how many may wait at an
    instance, where more are refused; None where none are.
    """

    servers: int
    overhead_s: float
    services_s: Floats
    waiting: int | None = None

    @classmethod
    def of(cls, capacity: Mapping[str, Any]) -> Self | str:
        """The instance that the twin in ``capacity.json`` describes; a clause with the reason where there is none.

        ValueError for what no search writes.
        """
        twin = capacity.get("twin") or {}
        if not twin.get("fits"):
            reason = twin.get("reason") or "the search ended before one was fitted"
            return f"the capacity has no model of the endpoint: {reason}"
        if not twin.get("services_s"):
            return "the capacity is of an older version, without the services of its model: measure it again"
        kinds = {"servers": int, "overhead_s": float, "services_s": list[float]}
        for key, kind in kinds.items():
            require(twin.get(key), kind, f"twin.{key}")
        if twin["servers"] < 1 or twin["overhead_s"] < 0 or min(twin["services_s"]) < 0 or not any(twin["services_s"]):
            raise ValueError("twin has no servers, or a time below 0")
        instances = (capacity.get("endpoint") or {}).get("instances") or 1
        if twin["servers"] % instances:
            return f"the model has {twin['servers']} servers, which {instances} instances cannot share equally"
        return cls(twin["servers"] // instances, twin["overhead_s"], np.array(twin["services_s"], np.float64))

    @property
    def mean_s(self) -> float:
        """The mean seconds in a server."""
        return float(self.services_s.mean())

    @property
    def most(self) -> float:
        """The rate that keeps all servers of an instance busy, requests/s."""
        return self.servers / self.mean_s
