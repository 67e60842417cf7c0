"""The order of variants: ``ranking.json``. Rates in requests/s, costs in the price's currency. Pure."""

from dataclasses import dataclass, field
from typing import Any, Literal

from server_capacity.results.types.bounds import (
    Amount,
    Ended,
    Endpoint,
    ExitCode,
    Instances,
    Interval,
    Number,
    Positive,
    Priced,
    Quota,
    Rank,
    Rate,
    Seconds,
    Share,
    Verdict,
    Version,
)

By = Literal["cost_hour", "instances_for_target", "cost_per_million", "rate"]


@dataclass(frozen=True, slots=True)
class Latency:
    """Times at the lower end; ``p99_measured``: a wave there told it."""

    p50: Seconds | None = None
    p99: Seconds | None = None
    p99_measured: bool = False


@dataclass(frozen=True, slots=True)
class Used:
    """The use of a resource at the lower end."""

    at_low: Number
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a variant if it holds the most that it may (None: without a bound), and the least."""

    best: Amount | None
    worst: Amount


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A variant; without a ``rank`` there is nothing to compare of it, and ``headline`` says why."""

    variant: dict[str, str] = field(default_factory=dict)
    outcome: str = ""
    headline: str = ""
    capacity: str | None = None
    label: str = ""
    rank: Rank | None = None
    tied_with: list[Rank] = field(default_factory=list)
    score: Score | None = None
    rate: Rate | None = None
    interval: Interval | None = None
    limit: str | None = None
    latency: Latency | None = None
    server_utilisation: dict[str, Used] | None = None
    instances: Instances | None = None
    price: Priced | None = None
    seconds_to_create: Seconds | None = None
    endpoint: Endpoint | None = None
    instances_for_target: Instances | None = None
    cost_hour: Amount | None = None
    cost_month: Amount | None = None
    cost_per_million: Amount | None = None
    cost_per_million_tokens: Amount | None = None
    exit_code: ExitCode | None = None
    ended: Ended | None = None
    confirmed: Verdict | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Traffics:
    """Several traffics to an endpoint: whether they are equivalent, None where it cannot be told."""

    text: str
    equivalent: bool | None = None
    within: Share | None = None


@dataclass(frozen=True, slots=True)
class RankingResult:
    """All that a ranking tells: the rows in their order, those without a rank last."""

    schema_version: Version
    rows: list[RankedRow]
    ranked_by: By = "rate"
    exit_code: ExitCode = 0
    headline: str = ""
    target_rps: Positive | None = None
    utilisation: Share = 0.7
    interrupted: bool = False
    payload_variants: Traffics | None = None
    remarks: list[str] = field(default_factory=list)
    created: str | None = None
    recommender: dict[str, Any] | None = None
    quotas: list[Quota] | None = None
    spend: dict[str, Any] | None = None
    digest: str | None = None
    built_on: dict[str, str] | None = None
