"""The contradictions of a plan for users in itself. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.results.agreement import HOURS_A_MONTH, SAME, between, like, needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.plan import PlanResult
    from server_capacity.results.types.users_plan import ReplicaOption, UsersDemand, UsersPlan

_DAY_S = 86_400


def users_problems(found: PlanResult, plan: UsersPlan) -> Iterator[str]:
    """Every contradiction, as a sentence."""
    if found.endpoints or found.refused:
        yield "it plans for users, and has endpoints or refuses one"
    if found.exit_code != plan.exit_code:
        yield f"its exit code is {found.exit_code}, but what it is based on means {plan.exit_code}"
    if found.cost != plan.cost or plan.cost != plan.chosen.cost:
        yield "its cost is not that of what is chosen"
    if plan.measured.high is not None:
        yield from between(f"the rate of {plan.name}", plan.measured.low, plan.measured.rate, plan.measured.high)
    elif plan.measured.low > plan.measured.rate * (1 + SAME):
        yield f"the rate of {plan.name} is {plan.measured.rate:g}, below its lower end {plan.measured.low:g}"
    yield from _of_demand(plan.demand)
    yield from _of_options(plan, found.spare)
    yield from _of_routing(plan)
    yield from _of_lost(plan)
    yield from _of_costs(plan)


def target_of(plan: UsersPlan) -> float:
    """The load of the busiest hour in the unit of the rates."""
    return plan.demand.peak_open if plan.unit == "users" else plan.demand.peak_per_s


def _of_demand(demand: UsersDemand) -> Iterator[str]:
    """The arrivals follow from the users, and what is open from the arrivals."""
    per_s = demand.users * demand.conversations_per_day * demand.peak_factor / _DAY_S
    if not like(per_s, demand.peak_per_s):
        yield f"{per_s:g} conversations/s begin in its busiest hour, and {demand.peak_per_s:g} are stored"
    if not like(demand.peak_per_s * demand.length_s, demand.peak_open):
        yield f"{demand.peak_per_s:g}/s of {demand.length_s:g} s are stored as {demand.peak_open:g} open conversations"


def _of_options(plan: UsersPlan, spare: int | None) -> Iterator[str]:
    """Each has as many replicas as its share needs and as may be lost, and costs what they do."""
    target = target_of(plan)
    if plan.chosen not in plan.options:
        yield f"what is chosen for {plan.name} is none of its options"
    if plan.chosen.routing != plan.routing:
        yield f"it is planned with {plan.routing} routing, and {plan.chosen.routing} is chosen"
    alone = {each.routing: each.replicas for each in plan.options if each.share == 1}
    for option in plan.options:
        if not needed(option.replicas, option.share * option.per_replica, target):
            yield f"{option.replicas} replicas are not what {target:g} need at {option.name}"
        if spare is not None and option.with_spare != max(option.replicas, alone.get(option.routing, 0) + spare):
            yield f"{option.name} has {option.replicas} replicas, {spare} to spare, and {option.with_spare} with them"
        yield from _of_cost(option)


def _of_cost(option: ReplicaOption) -> Iterator[str]:
    cost = option.cost
    if cost is None or cost.price_per_hour is None:
        return
    if not like(cost.hour, cost.price_per_hour * option.replicas):
        yield f"{option.replicas} replicas cost {cost.hour:g} an hour, at {cost.price_per_hour:g}"
    if not like(cost.month, cost.hour * HOURS_A_MONTH):
        yield f"{option.name} costs {cost.month:g} per month, but {cost.hour:g} per hour"


def _of_routing(plan: UsersPlan) -> Iterator[str]:
    """Behind a router no replica serves more than was measured."""
    if (plan.comparison.engine is None) == (plan.comparison.reason is None):
        yield "it was simulated on an engine and not simulated, or neither"
    low = plan.measured.low
    for option in plan.options:
        if option.per_replica > low * (1 + SAME):
            yield f"with {option.routing} routing a replica serves {option.per_replica:g}, above the measured {low:g}"
        if option.replicas == 1 and not like(option.per_replica, low):
            yield f"one replica has no routing, and serves {option.per_replica:g} of the measured {low:g}"


def _of_lost(plan: UsersPlan) -> Iterator[str]:
    lost, target = plan.lost, target_of(plan)
    if lost.replicas != plan.chosen.replicas - 1:
        yield f"with one of {plan.chosen.replicas} replicas lost there are {lost.replicas}"
    if lost.per_replica is not None and not like(lost.per_replica * lost.replicas, target):
        yield f"{lost.replicas} replicas have {lost.per_replica:g} each, of {target:g}"
    if lost.holds and (lost.per_replica is None or lost.per_replica > plan.measured.low * (1 + SAME)):
        yield f"{lost.replicas} replicas hold what none of them was measured to"


def _of_costs(plan: UsersPlan) -> Iterator[str]:
    cost, demand = plan.cost, plan.demand
    for stored, meant in (
        (plan.cost_per_conversation, cost and cost.hour * 24 / (demand.users * demand.conversations_per_day)),
        (plan.cost_per_user_month, cost and cost.month / demand.users),
    ):
        if (stored is None) != (meant is None) or (stored is not None and not like(stored, meant or 0.0)):
            yield f"a conversation or a user costs {stored or 0:g}, and the replicas {meant or 0:g} for each"
