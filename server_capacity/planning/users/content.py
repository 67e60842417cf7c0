"""The plan of an endpoint for users: the object ``users`` of ``fleet_plan.json``. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from server_capacity.planning.users.comparing import hit_rate_of
from server_capacity.planning.users.remarks import remarks
from server_capacity.planning.users.sizing import demand_of, holdings, lost_of, open_at_most, options_of, target_of
from server_capacity.results.types.users_plan import PREFIX_AWARE, RANDOM, PerReplica, UsersPlan

if TYPE_CHECKING:
    from server_capacity.planning.measured import Measured
    from server_capacity.planning.request import PlanRequest
    from server_capacity.planning.users.comparing import Compared
    from server_capacity.planning.users.sizing import Costing, Holding
    from server_capacity.results.types.users_plan import ReplicaOption, Routing, Unit, UsersDemand


def users_plan(asked: PlanRequest, search: Measured, compared: Compared, costing: Costing) -> UsersPlan | str:
    """The plan, or the reason why there is none by what was measured."""
    unit: Unit = "users" if search.data.in_ == "users" else "sessions"
    hit_rate, demand = hit_rate_of(search), demand_of(asked, search)
    low, target = search.low / search.instances, target_of(demand, unit)
    routings = holdings(compared, hit_rate)
    options = list(options_of(asked, low, target, routings, costing))
    option = _chosen(asked, options, routings)
    if isinstance(option, str):
        return f"{option}: {compared.comparison.reason or 'no number of replicas is enough'}"
    found = UsersPlan(
        name=asked.name or search.name,
        capacity=search.folder,
        digest=search.data.digest,
        endpoint=search.data.endpoint,
        unit=unit,
        limits=[row.expression for row in search.data.limits],
        limit=search.data.limit,
        measured=_per_replica(search),
        demand=demand,
        routing=option.routing,
        routing_given=bool(asked.routing),
        hit_rate=hit_rate,
        options=options,
        chosen=option,
        lost=lost_of(option.replicas, target, low, routings[option.routing]),
        comparison=compared.comparison,
        open_at_most=open_at_most(demand, option.replicas),
        cost=option.cost,
        cost_per_conversation=_per_conversation(option, demand),
        cost_per_user_month=None if option.cost is None else option.cost.month / demand.users,
        warnings=search.warnings,
        exit_code=search.exit_code,
    )
    return replace(found, remarks=[*remarks(found, search), *compared.remarks])


def _chosen(asked: PlanRequest, options: list[ReplicaOption], routings: dict[Routing, Holding]) -> ReplicaOption | str:
    """The option of the routing that was given; where none was, the random one if that is known: it is the safe one."""
    routing = asked.routing or (RANDOM if RANDOM in routings else PREFIX_AWARE)
    found = [each for each in options if each.routing == routing and abs(each.share - asked.utilisation) < 1e-9]
    return found[0] if found else f"replicas behind {routing.replace('_', '-')} routing cannot be planned"


def _per_replica(search: Measured) -> PerReplica:
    count = search.instances
    return PerReplica(
        low=search.low / count,
        rate=search.rate / count,
        high=None if search.high is None else search.high / count,
        measured_at=count,
        counted=search.is_counted,
    )


def _per_conversation(option: ReplicaOption, demand: UsersDemand) -> float | None:
    return None if option.cost is None else option.cost.hour * 24 / (demand.users * demand.conversations_per_day)
