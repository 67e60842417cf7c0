"""The planned fleet under its load: the block ``simulation`` of an endpoint in fleet_plan.json. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.fleet.demand import Recorded, Step, Steps
from server_capacity.models.fleet.result_section import Chosen, not_simulated, simulations
from server_capacity.planning.sizing import ALARM_S
from server_capacity.planning.targets import routing_of, targets_of
from server_capacity.results.text.agreement import disagree

if TYPE_CHECKING:
    from server_capacity.planning.case import Case
    from server_capacity.results.types.plan import EndpointPlan, Simulation

MOST_REQUESTS = 100_000_000
_BEFORE_S, _AFTER_S = 600.0, 1800.0
"""Growth begins after so long at the target, and the load stays that long where it has led."""


def simulation(case: Case, plan: EndpointPlan, *, compare: bool) -> Simulation | None:
    """The load through the planned fleet, with its policy and with as many instances all along.

    None: there is no load over time. ``compare``: with the other policies, too. Where it cannot be simulated ``runs``
    is empty, and ``reason`` a clause.
    """
    demand = _demand(case, plan)
    if demand is None:
        return None
    creation = case.seconds_to_create
    if not plan.linear:
        return not_simulated(f"its capacity does not grow linearly with the instances: {case.main.not_linear}")
    if disagree(case.main.data):
        return not_simulated("the measurement and the queueing model disagree")
    if creation is None:
        return not_simulated("the time until a new instance serves is not known: give --seconds-to-create")
    requests = _requests(demand)
    if requests > MOST_REQUESTS:
        return not_simulated(f"{requests:,.0f} requests are more than can be simulated ({MOST_REQUESTS:,})")
    chosen, targets = plan.chosen, targets_of(plan, case.main)
    choice = Chosen(
        rps=targets.rps,
        instances=chosen.instances,
        minimum=chosen.minimum,
        maximum=chosen.maximum,
        instance_start_s=creation[0],
        routing=routing_of(plan),
        concurrency=None if isinstance(targets.concurrency, str) else targets.concurrency,
        cpu=None if isinstance(targets.cpu, str) else (targets.cpu.value, targets.cpu.use),
    )
    per_hour = plan.cost.price_per_hour if plan.cost else None
    main = case.main
    return simulations(main.data, main.instances, demand, choice, compare=compare, per_hour=per_hour)


def _demand(case: Case, plan: EndpointPlan) -> Steps | Recorded | None:
    """The stages, the recording, or the growth from the target on until new instances serve."""
    recorded = case.demand.recorded
    if case.demand.stages:
        return Steps.of(case.demand.stages)
    if recorded is not None:
        return Recorded.of(recorded.arrivals_s, recorded.length_s)
    scale_out = plan.scale_out
    if scale_out is None or scale_out.safety_factor is None:
        return None
    target = case.demand.target_rps
    last = target / scale_out.safety_factor
    ramp = Step(target, last, ALARM_S + scale_out.create_s)
    return Steps((Step(target, target, _BEFORE_S), ramp, Step(last, last, _AFTER_S)))


def _requests(demand: Steps | Recorded) -> float:
    if isinstance(demand, Steps):
        return sum(step.arrivals for step in demand.steps)
    return float(sum(map(len, demand.parts(np.random.default_rng(0)))))
