"""One instance as the fleet has it: servers, the services that they draw, the time outside of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from server_capacity.results.types.twin import Twin

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
    def of(cls, twin: Twin | None, instances: int) -> Self | str:
        """One of the instances that the model describes together; a clause with the reason where there is none.

        ValueError for what no search writes.
        """
        if twin is None or not twin.fits:
            reason = (twin and twin.reason) or "the search ended before one was fitted"
            return f"the capacity has no model of the endpoint: {reason}"
        if not twin.services_s:
            return (
                "the capacity was measured by an older version, without the service times of its model: measure "
                "it again"
            )
        if not twin.servers or twin.overhead_s is None or twin.overhead_s < 0 or not any(twin.services_s):
            raise ValueError("twin has no servers, or a time below 0")
        if twin.servers % instances:
            return f"the model has {twin.servers} servers, which {instances} instances cannot share equally"
        return cls(twin.servers // instances, twin.overhead_s, np.array(twin.services_s, np.float64))

    @property
    def mean_s(self) -> float:
        """The mean seconds in a server."""
        return float(self.services_s.mean())

    @property
    def most(self) -> float:
        """The rate that keeps all servers of an instance busy, requests/s."""
        return self.servers / self.mean_s
