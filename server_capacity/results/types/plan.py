"""The deployment for a load: ``fleet_plan.json``. Rates in requests/s, times in seconds. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from inference_benchmarker.data.decoded import OMITTED, omitted_without
from server_capacity.results.types.bounds import (
    Amount,
    Cost,
    Count,
    Endpoint,
    ExitCode,
    Extrapolated,
    Instances,
    Money,
    Number,
    Positive,
    Quota,
    Seconds,
    Share,
    Spread,
    Version,
)
from server_capacity.results.types.users_plan import UsersPlan


@dataclass(frozen=True, slots=True)
class PerInstance:
    """The rate of one instance with its interval; ``high`` None: no limit was violated."""

    low: Positive
    rate: Positive
    high: Positive | None
    measured_at: Instances
    counted: bool = True
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A search that the plan rests on; ``low`` is of all its ``instances``, ``digest`` that of its file."""

    folder: str
    instances: Instances
    low: Positive
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """A use at which instances may run; None where nothing is known of so many."""

    name: str
    share: Share
    instances: Instances | None = None
    with_spare: Instances | None = None
    invocations_per_instance: Amount | None = None
    cost: Cost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithOneLost:
    """The target on one instance fewer."""

    instances: Count
    rate_per_instance: Extrapolated | None = None
    share_of_low: Amount | None = None
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The option that is planned, and the bounds of its policy."""

    name: str
    share: Share
    instances: Instances
    with_spare: Instances
    invocations_per_instance: Amount
    cost: Cost | None = None
    minimum: Instances
    maximum: Instances
    capped: bool = False
    with_one_lost: WithOneLost


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """The time until a new instance serves, and the share of its limit that growth leaves."""

    alarm_s: Seconds
    create_s: Seconds
    source: str = ""
    growth_per_min: Amount | None = None
    safety_factor: Share | None = None


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of a simulated run."""

    total: Money
    hour: Money
    month: Money
    per_million: Money | None = None


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute of a simulated run."""

    minute: Count
    rate: Extrapolated
    instances: Amount
    share_over: Share = 0.0
    p99: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A policy's simulated run. ``file``: the plan's file that it is of; None: of none."""

    policy: str
    requests: Count
    over: Count
    share_over: Share
    minutes: Amount
    minutes_over: Amount
    refused: Count
    instance_hours: Amount
    cost: RunCost | None
    mean: Seconds | None
    p99: Seconds | None
    mean_instances: Amount
    most_instances: Amount
    timeline: list[Minute]
    file: str | None = None


@dataclass(frozen=True, slots=True)
class SearchedRequests:
    """The requests of a search, for its plan's verification. Secrets are hidden, and headers have their names alone.

    ``settings``: of the factories file. ``flags``: the other flags that shape a request or a client, with their values.
    ``digests``: the SHA-256 of files, ``""`` of the factories file, by its path of a module that it imports, and by
    the setting that names it of another one.
    """

    settings: dict[str, str] = field(default_factory=dict)
    flags: dict[str, list[str]] = field(default_factory=dict)
    headers: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)


_WHERE_SIMULATED = omitted_without("limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The load through the planned fleet; ``reason``: why it was not simulated, and there is no ``limit`` then."""

    reason: str | None = None
    limit: str | None = field(default=None, metadata=OMITTED)
    bound: Number = field(default=0.0, metadata=_WHERE_SIMULATED)
    allowed: Share = field(default=0.0, metadata=_WHERE_SIMULATED)
    routing: Literal["random", "least_outstanding"] = field(default="random", metadata=_WHERE_SIMULATED)
    instance_start_s: Seconds = field(default=0.0, metadata=_WHERE_SIMULATED)
    runs: list[Run]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPlan:
    """The plan of one endpoint; ``warnings``: what its search leaves open."""

    name: str
    capacity: str | None = None
    capacities: list[Source] = field(default_factory=list)
    endpoint: Endpoint | None = None
    variant: dict[str, str] | None = None
    factories_file: str | None = None
    requests: SearchedRequests | None = None
    limits: list[str] = field(default_factory=list)
    limit: str | None = None
    arrivals: str | None = None
    per_instance: PerInstance
    linear: bool = True
    routing: str | None = None
    target_rps: Positive
    peak_rps: Extrapolated | None = None
    least_rps: Extrapolated | None = None
    options: list[Option]
    scale_out: ScaleOut | None = None
    simulation: Simulation | None = None
    correlation: Spread | None = None
    warnings: list[str] = field(default_factory=list)
    exit_code: ExitCode | None = None
    chosen: Choice
    cost: Cost | None = None
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """The whole result of a plan, for requests/s or, without ``endpoints``, for ``users``."""

    schema_version: Version
    created: str | None = None
    exit_code: ExitCode
    target_rps: Positive | None = None
    utilisation: Share | None = None
    spare: Count | None = None
    growth_per_min: Amount | None = None
    limits: list[str] = field(default_factory=list)
    arrivals: str | None = None
    endpoints: list[EndpointPlan]
    users: UsersPlan | None = field(default=None, metadata=OMITTED)
    quota: list[Quota] | None = None
    cost: Cost | None = None
    priced: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    headline: str = ""
    built_on: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
