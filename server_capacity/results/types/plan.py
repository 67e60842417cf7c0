"""The deployment for a load: ``fleet_plan.json``. Rates in requests/s, times in seconds. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from server_capacity.results.types.bounds import (
    Amount,
    Cost,
    Count,
    Endpoint,
    ExitCode,
    Extrapolated,
    Instances,
    Number,
    Positive,
    Quota,
    Seconds,
    Share,
    Spread,
    Version,
)


@dataclass(frozen=True, slots=True)
class PerInstance:
    """The rate of one instance with its interval; ``high`` None: no limit gave out."""

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


@dataclass(frozen=True, slots=True)
class WithOneLost:
    """The target on one instance fewer."""

    instances: Count
    holds: bool
    rate_per_instance: Extrapolated | None = None
    share_of_low: Amount | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The option that is planned, and the bounds of its policy."""

    name: str
    share: Share
    instances: Instances
    minimum: Instances
    maximum: Instances
    with_spare: Instances
    with_one_lost: WithOneLost
    invocations_per_instance: Amount | None = None
    capped: bool = False
    cost: Cost | None = None


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

    total: Amount
    hour: Amount
    month: Amount
    per_million: Amount | None = None


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
    share_over: Share
    file: str | None = None
    over: Count = 0
    refused: Count = 0
    minutes: Amount | None = None
    minutes_over: Amount | None = None
    instance_hours: Amount | None = None
    cost: RunCost | None = None
    mean: Seconds | None = None
    p99: Seconds | None = None
    mean_instances: Amount | None = None
    most_instances: Amount | None = None
    timeline: list[Minute] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Simulation:
    """The load through the planned fleet; ``reason``: why it was not simulated."""

    runs: list[Run]
    reason: str | None = None
    limit: str | None = None
    bound: Number | None = None
    allowed: Share | None = None
    routing: Literal["random", "least_outstanding"] | None = None
    instance_start_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class EndpointPlan:
    """The plan of one endpoint; ``warnings``: what its search leaves open."""

    name: str
    per_instance: PerInstance
    target_rps: Positive
    options: list[Option]
    chosen: Choice
    capacity: str | None = None
    capacities: list[Source] = field(default_factory=list)
    endpoint: Endpoint | None = None
    variant: dict[str, str] | None = None
    factories_file: str | None = None
    limits: list[str] = field(default_factory=list)
    limit: str | None = None
    arrivals: str | None = None
    linear: bool = True
    routing: str | None = None
    peak_rps: Extrapolated | None = None
    least_rps: Extrapolated | None = None
    scale_out: ScaleOut | None = None
    simulation: Simulation | None = None
    correlation: Spread | None = None
    cost: Cost | None = None
    remarks: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    exit_code: ExitCode | None = None


@dataclass(frozen=True, slots=True)
class PlanResult:
    """All that a plan tells."""

    schema_version: Version
    exit_code: ExitCode
    endpoints: list[EndpointPlan]
    headline: str = ""
    created: str | None = None
    target_rps: Positive | None = None
    utilisation: Share | None = None
    spare: Count | None = None
    growth_per_min: Amount | None = None
    limits: list[str] = field(default_factory=list)
    arrivals: str | None = None
    quota: list[Quota] | None = None
    cost: Cost | None = None
    priced: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    digest: str | None = None
