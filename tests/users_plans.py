"""A plan for users, from searches and simulations that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from server_capacity.planning.measured import Measured, measured
from server_capacity.planning.request import PlanRequest
from server_capacity.planning.users.comparing import Compared
from server_capacity.planning.users.content import users_plan
from server_capacity.planning.users.routing import Routed, Routings
from server_capacity.results.types.price import Price, cost
from server_capacity.results.types.users_plan import FittedEngine, RoutingComparison, UsersPlan
from tests.capacities import searched

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.results.types.bounds import Cost
    from server_capacity.results.types.users_plan import Routing

ENGINE = FittedEngine(
    prefill_ms=[0.0, 0.015, 16.0],
    step_ms=[0.0, 50.0, 6.0, 0.0],
    kv_tokens=400_000,
    way_ms=1.0,
    streams=1000,
    idle=30,
    decodes=40,
    prompt=2000,
)
SESSIONS = {
    "sessions_per_s": 5.0,
    "open_sessions": 40.0,
    "turns_per_s": 20.0,
    "input_tokens_per_s": 10_000.0,
    "output_tokens_per_s": 800.0,
    "cached_tokens_per_s": 6_000.0,
    "turns": 4.0,
    "length_s": 8.0,
    "alone_s": 5.0,
}


def talked(low: float = 40.0, **more: Any) -> dict[str, Any]:
    """A search for the conversations that may be open, without what a search for requests/s has."""
    return {
        "in": "users",
        "rate": low * 1.05,
        "interval": {"low": low, "high": low * 1.1},
        "limit": "tpot.p95<40ms",
        "arrivals": None,
        "limits": [{"expression": "tpot.p95<40ms", "rate": low * 1.05, "interval": {"low": low, "high": low * 1.1}}],
        "confirmation": [{"rate": low, "seconds": 60.0, "verdict": "holds", "limits": []}],
        "stretches": None,
        "windows": None,
        "memory": None,
        "twin": None,
        "endpoint": {"name": "chat", "instance_type": "gpu", "instances": 1},
        "sessions": SESSIONS,
        **more,
    }


def search_of_users(low: float = 40.0, **more: Any) -> Measured:
    """The same as a plan reads it."""
    made = measured(searched(**talked(low, **more)), "x_capacity", for_users=True)
    assert isinstance(made, Measured), made
    return made


def by_hits(most: int = 40, hits: float = 0.6, *, in_users: bool = True) -> Compared:
    """A simulation in which a replica serves ``most`` users, and half of them where nothing is in the cache."""

    def simulate(users: int, replicas: int, routing: Routing) -> Routed | None:
        found = hits / (1 if routing == "prefix_aware" else replicas)
        held = most * (0.5 + 0.5 * found / hits)
        return Routed(users, users / 8, found) if users <= held else None

    alone = simulate(most, 1, "prefix_aware")
    assert alone is not None
    comparison = RoutingComparison(engine=ENGINE, conversations=100, users=most)
    return Compared(comparison, Routings(simulate, alone, in_users))


def asked_for(**more: Any) -> PlanRequest:
    """By default 28,800 users with 3 conversations a day, 1 a second on average and 3 in the busiest hour."""
    values: dict[str, Any] = {"users": 28_800, "conversations_per_day": 3.0, "peak_factor": 3.0, **more}
    return PlanRequest((Path("x_capacity"),), **values)


def at_price(hour: float | None) -> Callable[[int, float], Cost | None]:
    """The cost of replicas at so much an hour each."""
    return lambda count, per_s: None if hour is None else cost(Price("gpu", hour), count, per_s)


def planned_for(
    search: Measured | None = None, compared: Compared | None = None, hour: float | None = 4.0, **asked: Any
) -> UsersPlan:
    """The plan of a search by a simulation; BenchmarkError where there is none."""
    made = users_plan(asked_for(**asked), search or search_of_users(), compared or by_hits(), at_price(hour))
    assert isinstance(made, UsersPlan), made
    return made
