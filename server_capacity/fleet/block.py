"""The block ``simulation`` of fleet_plan.json: the chosen policy beside fixed instances and other policies. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from server_capacity.fleet.policies import Fixed, StepScaling, TargetTracking, step_low
from server_capacity.fleet.service import Service
from server_capacity.fleet.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server_capacity.fleet.demand import Demand
    from server_capacity.fleet.policies import Policy
    from server_capacity.fleet.routing import Routing

MOST_INSTANCES, MOST_SERVERS = 1 << 16, 1_000_000
"""A router numbers instances with 16 bits, and keeps an instant for each server."""

_SEED = 17  # any: the same plan gives the same numbers


@dataclass(frozen=True, slots=True)
class Chosen:
    """A plan's choice, as the simulation takes it.

    ``rps``: requests/s of an instance that policies aim at; ``instances``: of a fleet that stands still;
    ``instance_start_s``: seconds from a change until new instances take requests.
    """

    rps: float
    instances: int
    minimum: int
    maximum: int
    instance_start_s: float
    routing: Routing = "random"

    def policies(self, service: Service) -> tuple[Policy, ...]:
        """The recommended one, the fleet that stands still, and the others, which aim at the same rate."""
        bounds: _Bounds = {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "instance_start_s": self.instance_start_s,
        }
        busy, minutely = self.rps * service.mean_s, 60 * self.rps
        return (
            TargetTracking(metric="invocations", target=minutely, **bounds),
            Fixed(self.instances),
            TargetTracking(metric="concurrency", target=busy, **bounds),
            TargetTracking(metric="cpu", target=100 * busy / service.servers, **bounds),
            StepScaling(metric="invocations", high=minutely, low=step_low(minutely, self.minimum), **bounds),
        )


class _Bounds(TypedDict):
    minimum: int
    maximum: int
    instance_start_s: float


def simulations(
    capacity: Mapping[str, Any],
    demand: Demand,
    chosen: Chosen,
    *,
    compare: bool = False,
    per_hour: float | None = None,
) -> dict[str, Any]:
    """The demand through the fleet of a ``capacity.json``, with the chosen policy and with as many instances all along.

    ``compare``: with every other policy, too; ``per_hour``: the price of an instance. Without a model of the endpoint
    ``runs`` is empty, and ``reason`` a clause.
    """
    service = Service.of(capacity)
    limit = _limit(capacity)
    if isinstance(service, str) or limit is None:
        reason = service if isinstance(service, str) else "no limit is on the time until an answer ends"
        return {"reason": reason, "runs": []}
    instances = max(chosen.instances, chosen.maximum)
    for count, most, what in (
        (instances, MOST_INSTANCES, "instances"),
        (instances * service.servers, MOST_SERVERS, "servers of the model"),
    ):
        if count > most:
            return {"reason": f"{count:,} {what} are more than the {most:,} that are simulated", "runs": []}
    bound, allowed = limit["bound"], limit["allowed"]
    policies = chosen.policies(service)[: None if compare else 2]
    runs = [
        simulate(service, demand, policy, chosen.routing, bound_s=bound, allowed=allowed, seed=_SEED)
        for policy in policies
    ]
    return {
        "reason": None,
        "limit": limit["expression"],
        "bound": bound,
        "allowed": allowed,
        "routing": chosen.routing,
        "instance_start_s": chosen.instance_start_s,
        "runs": [run.to_json(per_hour) for run in runs],
    }


def _limit(capacity: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The limit that the model has answered for."""
    expression = (capacity.get("twin") or {}).get("limit")
    return next((each for each in capacity.get("limits") or () if each["expression"] == expression), None)
