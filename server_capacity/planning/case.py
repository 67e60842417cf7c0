"""Everything that the plan of one endpoint is computed from. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from server_capacity.planning.request import LEAST_OUTSTANDING, RANDOM

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.planning.demand import Demand
    from server_capacity.planning.measured import Measured
    from server_capacity.planning.request import PlanRequest
    from server_capacity.results.types.bounds import Cost

    Costing = Callable[[int, float], Cost | None]


_ROUTINGS = {"RANDOM": RANDOM, "LEAST_OUTSTANDING_REQUESTS": LEAST_OUTSTANDING}


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that the plan of one endpoint is computed from.

    ``costing`` gives the cost of so many instances at so many requests/s, or None where there is no price.
    """

    asked: PlanRequest
    searches: list[Measured]
    demand: Demand
    costing: Costing

    @property
    def main(self) -> Measured:
        """The search that the plan rests on: where instances add up the one with the least of each, else of the most.

        It does not depend on the order of the searches.
        """
        if self.searches[0].not_linear:
            return min(self.searches, key=lambda each: (-each.instances, each.low, each.folder))
        return min(self.searches, key=lambda each: (each.low / each.instances, -each.instances, each.folder))

    @property
    def routing(self) -> str | None:
        """The way in which requests find their instance: as it was given, else as the endpoint has it."""
        return self.asked.routing or _ROUTINGS.get(str(self.main.endpoint.routing))

    @property
    def seconds_to_create(self) -> tuple[float, str] | None:
        """The seconds from the demand for an instance until it serves, and where they are from."""
        if self.asked.seconds_to_create is not None:
            return self.asked.seconds_to_create, "given"
        measured = [each.endpoint.seconds_to_create for each in self.searches]
        known = [each for each in measured if each is not None]
        return (max(known), "measured") if known else None
