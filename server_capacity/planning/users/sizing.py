"""From users to the load of their busiest hour, and from that to replicas. Pure."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.planning.users.routing import Held
from server_capacity.results.types.users_plan import PREFIX_AWARE, RANDOM, ReplicaLost, ReplicaOption, UsersDemand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from server_capacity.planning.measured import Measured
    from server_capacity.planning.request import PlanRequest
    from server_capacity.planning.users.comparing import Compared
    from server_capacity.results.types.bounds import Cost
    from server_capacity.results.types.users_plan import Routing

    Holding = Callable[[int], Held]
    Costing = Callable[[int, float], Cost | None]

DAY_S = 86_400
LIMIT_ALONE = "limit alone"
_SIDE_BY_SIDE = (1.0, 0.7, 0.6, 0.5)
_ARITHMETIC = 1e-9
MOST_OPEN = 1_000_000.0
"""Conversations on a replica, whose chance nobody needs to know beyond."""


def demand_of(asked: PlanRequest, search: Measured) -> UsersDemand:
    """The busiest hour: conversations that begin a second and, by Little's law, those that are open at a time."""
    at = search.data.sessions
    assert at is not None
    assert at.length_s is not None
    assert asked.users is not None
    assert asked.conversations_per_day is not None
    assert asked.peak_factor is not None
    per_s = asked.users * asked.conversations_per_day * asked.peak_factor / DAY_S
    length_s = at.length_s
    if search.data.in_ == "users" and at.sessions_per_s:
        length_s = search.low / at.sessions_per_s  # older searches stored the mean of what ended while the load fell
    return UsersDemand(
        users=asked.users,
        conversations_per_day=asked.conversations_per_day,
        peak_factor=asked.peak_factor,
        turns=at.turns or None,
        length_s=length_s,
        peak_per_s=per_s,
        peak_open=per_s * length_s,
    )


def target_of(demand: UsersDemand, unit: str) -> float:
    """The load in the unit of the search."""
    return demand.peak_open if unit == "users" else demand.peak_per_s


def holdings(compared: Compared, hit_rate: float | None) -> dict[Routing, Holding]:
    """The part of a replica's capacity that is left, by the routing and the number of replicas; only what is known."""
    if compared.routings is not None:
        return {routing: partial(compared.routings.held, routing) for routing in (PREFIX_AWARE, RANDOM)}
    measured = Held(1.0, hit_rate or 0.0)
    return {PREFIX_AWARE: lambda _: measured, **({RANDOM: lambda _: measured} if compared.equal else {})}


def needed(target: float, each: float, held: Holding) -> int:
    """The fewest replicas that hold it, where one alone holds ``each``; 0 where no number does."""
    replicas = 1
    while True:
        share = held(replicas).share
        more = math.ceil(target / (each * share) * (1 - _ARITHMETIC)) if share else 0
        if more <= replicas:
            return more and replicas
        replicas = more


def options_of(
    asked: PlanRequest, low: float, target: float, routings: dict[Routing, Holding], costing: Costing
) -> Iterator[ReplicaOption]:
    """Each routing at each share of the limit, the largest share first; none where no number of replicas is enough."""
    shares = sorted({*_SIDE_BY_SIDE, asked.utilisation}, reverse=True)
    for routing, held in routings.items():
        alone = needed(target, low, held)
        for share in shares if alone else ():
            replicas = needed(target, share * low, held)
            yield ReplicaOption(
                routing=routing,
                name=LIMIT_ALONE if share == 1 else f"{100 * share:.4g}% use",
                share=share,
                replicas=replicas,
                with_spare=max(replicas, alone + asked.spare),
                per_replica=low * held(replicas).share,
                hit_rate=held(replicas).hit_rate,
                cost=costing(replicas, 0.0),
            )


def lost_of(replicas: int, target: float, low: float, held: Holding) -> ReplicaLost:
    """The busiest hour on one replica fewer."""
    left = replicas - 1
    if not left:
        return ReplicaLost(replicas=0, holds=False)
    each = target / left
    return ReplicaLost(replicas=left, per_replica=each, holds=each <= low * held(left).share * (1 + _ARITHMETIC))


def open_at_most(demand: UsersDemand, replicas: int) -> int:
    """The open conversations of a replica in 95% of the busiest hour, where users come at random."""
    return at_most(min(MOST_OPEN, demand.peak_open / replicas))


def at_most(mean: float, share: float = 0.95) -> int:
    """The number that a Poisson one with this mean is not above in such a share of the time."""
    end = math.ceil(mean + 10 * math.sqrt(mean) + 20)
    counts = np.arange(max(0, math.floor(mean - 10 * math.sqrt(mean) - 20)), end + 1)
    logs = counts * math.log(mean) - mean - np.array([math.lgamma(count + 1) for count in counts])
    return int(counts[np.searchsorted(np.cumsum(np.exp(logs)), share)])
