"""Replicas for users who have conversations: the key ``users`` of ``fleet_plan.json``. Times in seconds. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from server_capacity.results.types.bounds import (
    Amount,
    Cost,
    Count,
    Endpoint,
    ExitCode,
    Instances,
    Money,
    Number,
    Positive,
    Share,
)

Unit = Literal["users", "sessions"]
"""Of a plan's rates: open conversations, or those that begin a second."""
Routing = Literal["prefix_aware", "random"]
PREFIX_AWARE: Routing = "prefix_aware"
RANDOM: Routing = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersDemand:
    """The users, and the load of their busiest hour.

    ``peak_factor``: conversations that begin in it, over those of an average hour. ``turns``, ``length_s``: those of a
    conversation at the lower end. ``peak_per_s`` begin a second in the busiest hour, and ``peak_open`` are open then.
    """

    users: Instances
    conversations_per_day: Positive
    peak_factor: Positive
    turns: Positive | None = None
    length_s: Positive
    peak_per_s: Positive
    peak_open: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class PerReplica:
    """The rate of one replica with its interval, in open conversations or in those that begin a second."""

    low: Positive
    rate: Positive
    high: Positive | None
    measured_at: Instances
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOption:
    """A use at which replicas may run behind a router of this kind.

    ``per_replica``: what each of so many is certain to serve. ``hit_rate``: of their input tokens, in the simulation.
    """

    routing: Routing
    name: str
    share: Share
    replicas: Instances
    with_spare: Instances
    per_replica: Positive
    hit_rate: Share | None = None
    cost: Cost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedEngine:
    """The engine that the search's waves were fitted to, in ms and tokens, and what of it was measured.

    ``decodes``, ``prompt``: the most answers at a time, and the most tokens of a prompt that were computed.
    """

    prefill_ms: list[Number]
    step_ms: list[Number]
    kv_tokens: Instances
    way_ms: Number
    streams: Count
    idle: Count
    decodes: Count
    prompt: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingComparison:
    """Both routings on the fitted engine; ``reason``: why they were not compared, and there is no ``engine`` then.

    ``users``: those of one replica at which the limit is just met there. ``conversations``: of the search, that it had.
    """

    reason: str | None = None
    engine: FittedEngine | None = None
    conversations: Count = 0
    users: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLost:
    """The busiest hour on one replica fewer; ``per_replica``: the load of each, None where none is left."""

    replicas: Count
    per_replica: Amount | None = None
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersPlan:
    """The plan of one endpoint for users. ``unit``: that of its rates.

    ``routing_given``: the user said how the router works. ``hit_rate``: of the search's input tokens, at the lower end.
    ``open_at_most``: the open conversations of a replica in 95% of the busiest hour, where users come at random.
    """

    name: str
    capacity: str
    digest: str | None = None
    endpoint: Endpoint | None = None
    unit: Unit
    limits: list[str] = field(default_factory=list)
    limit: str | None = None
    measured: PerReplica
    demand: UsersDemand
    routing: Routing
    routing_given: bool
    hit_rate: Share | None = None
    options: list[ReplicaOption]
    chosen: ReplicaOption
    lost: ReplicaLost
    comparison: RoutingComparison
    open_at_most: Count
    cost: Cost | None = None
    cost_per_conversation: Money | None = None
    cost_per_user_month: Money | None = None
    warnings: list[str] = field(default_factory=list)
    exit_code: ExitCode
    remarks: list[str] = field(default_factory=list)
