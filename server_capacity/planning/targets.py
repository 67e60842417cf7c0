"""The targets of a planned endpoint's policies: what their metrics show at the planned rate. Pure.

The files of the policies are written with them, and the simulated policies keep the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from inference_benchmarker.words.units import MAX_SECONDS
from server_capacity.metrics.cloudwatch.instance_types import vcpus
from server_capacity.models.fleet.demand import Step, Steps
from server_capacity.models.fleet.policies import CpuUse, Fixed
from server_capacity.models.fleet.service import Service
from server_capacity.models.fleet.simulate import simulate
from server_capacity.planning.request import LEAST_OUTSTANDING
from server_capacity.planning.sizing import floored
from server_capacity.results.text.agreement import disagree
from server_capacity.search.limits import OF_STREAMS, TIMES

if TYPE_CHECKING:
    from server_capacity.models.fleet.routing import Routing
    from server_capacity.planning.measured import Measured
    from server_capacity.results.types.plan import EndpointPlan

_REQUESTS, _WARMING, _SEED = 100_000, 0.1, 17
_MOST_SIMULATED = 20  # instances: what one shares with more of them is as good as the same


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """A target on CPUUtilization, in CloudWatch's scale (100 for each core), and what it shows at any rate."""

    value: float
    use: CpuUse


@dataclass(frozen=True, slots=True)
class Targets:
    """Those of an instance at ``rps`` (requests/s); a clause with the reason in place of one that nothing tells."""

    rps: float
    concurrency: float | str
    cpu: CpuTarget | str

    @property
    def invocations(self) -> float:
        """Requests a minute."""
        return 60 * self.rps


def targets_of(plan: EndpointPlan, search: Measured) -> Targets:
    """The targets of the planned policies."""
    rps = plan.chosen.invocations_per_instance / 60
    latency = _latency_s(plan, search, rps)
    return Targets(rps, latency if isinstance(latency, str) else floored(rps * latency), _cpu(search, rps))


def routing_of(plan: EndpointPlan) -> Routing:
    """The routing that a planned endpoint is simulated with."""
    return "least_outstanding" if plan.routing == LEAST_OUTSTANDING else "random"


def _latency_s(plan: EndpointPlan, search: Measured, rps: float) -> float | str:
    """The mean latency where an instance serves so many requests/s: by the model, or between measured rates.

    At a higher rate, as the interval's lower end is, requests wait longer: a target from there asks for more use.
    """
    timed = next((row.metric for row in search.data.limits if row.metric in TIMES), None)
    if timed in OF_STREAMS:
        return f"the search measured {timed}, which is a part of the latency"
    service = Service.of(search.data.twin, search.instances)
    if not isinstance(service, str) and not disagree(search.data) and rps < service.most:
        return _modelled_s(service, plan, rps)
    found = _between_s(search, rps * search.instances)
    return "mean latency was not measured near the planned rate" if found is None else found


def _modelled_s(service: Service, plan: EndpointPlan, rps: float) -> float:
    instances = min(plan.chosen.instances, _MOST_SIMULATED)
    rate = rps * instances
    load = Steps((Step(rate, rate, _REQUESTS / rate),))
    routing = routing_of(plan)
    run = simulate(service, load, Fixed(instances), routing, bound_s=MAX_SECONDS, allowed=1.0, seed=_SEED)
    assert run.times.mean is not None
    return run.times.mean


def _between_s(search: Measured, rate: float) -> float | None:
    """The mean between the measured rates next to it: a queue's grows like 1 / (1 - load), whose inverse is a line."""
    points = sorted(
        (point.rate, point.mean)
        for point in search.data.curve or []
        if point.rate and point.mean is not None and 0 < point.mean < MAX_SECONDS
    )
    for (below, less), (above, more) in pairwise(points):
        if below <= rate <= above:
            part = (rate - below) / (above - below) if above > below else 0.0
            return 1 / ((1 - part) / less + part / more)
    return None


def _cpu(search: Measured, rps: float) -> CpuTarget | str:
    """CPUUtilization at the planned rate by the utilisation law."""
    rows = search.data.resources.all if search.data.resources else []
    found = [row for row in rows if row.metric == "CPUUtilization" and row.demand_s is not None]
    row = max(found, key=lambda each: each.at_low or 0.0, default=None)
    cores = vcpus(search.instance_type or "")
    if search.is_copies:
        return "CPUUtilization belongs to an instance, which copies share"
    if row is None:
        return "CPUUtilization was not measured (--endpoint-config asks for it)"
    if row.reason or not row.demand_s or row.demand_s < 0 or row.idle is None:
        return "CPUUtilization does not grow linearly with the rate"
    if cores is None:
        return "the instance type does not say how many cores CPUUtilization covers"
    use = CpuUse(100.0 * cores * row.idle, 100.0 * cores * row.demand_s * search.instances)
    return CpuTarget(floored(min(100.0 * cores, use.idle + use.per_rps * rps)), use)
