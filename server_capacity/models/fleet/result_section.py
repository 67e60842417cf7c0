"""The section ``simulation`` of fleet_plan.json: the chosen policy beside fixed instances and other policies. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypedDict

from server_capacity.models.fleet.policies import Fixed, PodScaling, StepScaling, TargetTracking, step_low
from server_capacity.models.fleet.service import Service
from server_capacity.models.fleet.simulate import simulate
from server_capacity.results.types.plan import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.models.fleet.demand import Demand
    from server_capacity.models.fleet.policies import CpuUse, Policy
    from server_capacity.models.fleet.routing import Routing
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.search_waves import LimitRow

MOST_INSTANCES, MOST_SERVERS = 1 << 16, 1_000_000
"""A router numbers instances with 16 bits, and keeps an instant for each server."""

INVOCATIONS_FILE, CONCURRENCY_FILE = "scaling_policy.json", "scaling_policy_concurrency.json"
CPU_FILE, STEP_FILE, HPA_FILE = "scaling_policy_cpu.json", "scaling_policy_step.json", "hpa.yaml"
"""Of a plan: the file that a simulated policy is that of; ``keda.yaml`` makes the same as ``hpa.yaml``."""

_SEED = 17  # any: the same plan gives the same numbers


@dataclass(frozen=True, slots=True)
class Chosen:
    """A plan's choice, as the simulation takes it.

    ``rps``: requests/s of an instance that policies aim at; ``instances``: of a fleet that stands still;
    ``instance_start_s``: seconds from a change until new instances take requests. ``concurrency``: the target of the
    policy on requests in flight; ``cpu``: that of the policy on CPU, and what it shows; None: there is no such file.
    """

    rps: float
    instances: int
    minimum: int
    maximum: int
    instance_start_s: float
    routing: Routing = "random"
    concurrency: float | None = None
    cpu: tuple[float, CpuUse] | None = None

    def policies(self) -> Iterator[tuple[Policy, str | None]]:
        """The recommended one, the fleet that stands still, and the others, each with the file that it is that of."""
        bounds: _Bounds = {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "instance_start_s": self.instance_start_s,
            "rps": self.rps,
        }
        minutely = 60 * self.rps
        yield TargetTracking(metric="invocations", target=minutely, **bounds), INVOCATIONS_FILE
        yield Fixed(self.instances), None
        if self.concurrency is not None:
            yield TargetTracking(metric="concurrency", target=self.concurrency, **bounds), CONCURRENCY_FILE
        if self.cpu is not None:
            target, use = self.cpu
            yield TargetTracking(metric="cpu", target=target, cpu=use, **bounds), CPU_FILE
        low = step_low(minutely, self.minimum)
        yield StepScaling(metric="invocations", high=minutely, low=low, **bounds), STEP_FILE
        yield PodScaling(metric="requests", target=self.rps, **bounds), HPA_FILE


class _Bounds(TypedDict):
    minimum: int
    maximum: int
    instance_start_s: float
    rps: float


def simulations(
    capacity: CapacityResult,
    instances: int,
    demand: Demand,
    chosen: Chosen,
    *,
    compare: bool = False,
    per_hour: float | None = None,
) -> Simulation:
    """The demand through a fleet of what was searched on so many ``instances``, under the chosen policy and fixed.

    ``compare``: with every other policy of which there is a file, too; ``per_hour``: the price of an instance. Without
    a model of the endpoint ``runs`` is empty, and ``reason`` a clause.
    """
    service = Service.of(capacity.twin, instances)
    limit = _limit(capacity)
    if isinstance(service, str) or limit is None or limit.bound is None or limit.allowed is None:
        return not_simulated(service if isinstance(service, str) else "no limit is on response time or latency")
    fleet = max(chosen.instances, chosen.maximum)
    for count, most, what in (
        (fleet, MOST_INSTANCES, "instances"),
        (fleet * service.servers, MOST_SERVERS, "servers of the model"),
    ):
        if count > most:
            return not_simulated(f"{count:,} {what} are more than can be simulated ({most:,})")
    bound, allowed = limit.bound, limit.allowed
    runs = []
    for policy, file in islice(chosen.policies(), None if compare else 2):
        run = simulate(service, demand, policy, chosen.routing, bound_s=bound, allowed=allowed, seed=_SEED)
        runs.append(run.to_result(file, per_hour))
    return Simulation(
        limit=limit.expression,
        bound=bound,
        allowed=allowed,
        routing=chosen.routing,
        instance_start_s=chosen.instance_start_s,
        runs=runs,
    )


def not_simulated(reason: str) -> Simulation:
    """The block where nothing was simulated; ``reason``: a clause."""
    return Simulation(reason=reason, runs=[])


def _limit(capacity: CapacityResult) -> LimitRow | None:
    """The limit that the model has answered for."""
    expression = capacity.twin and capacity.twin.limit
    return next((each for each in capacity.limits if each.expression == expression), None)
