"""The order of variants: ``ranking.json``. Rates in requests/s, costs in the price's currency. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from inference_benchmarker.data.decoded import OMITTED
from server_capacity.results.types.bounds import (
    Amount,
    Count,
    Ended,
    Endpoint,
    ExitCode,
    Instances,
    Interval,
    Money,
    Number,
    Positive,
    Rank,
    Rate,
    Seconds,
    Share,
    Spend,
    StatedQuota,
    Verdict,
    Version,
)
from server_capacity.results.types.price import Price

By = Literal["cost_hour", "instances_for_target", "cost_per_million", "cost_per_million_output", "rate"]


@dataclass(frozen=True, slots=True)
class Latency:
    """Times at the lower end; ``p99_measured``: a wave there measured it."""

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

    best: Money | None
    worst: Money


@dataclass(frozen=True, slots=True)
class TokensEach:
    """Tokens of a request, or of a session where the rates are of sessions; ``cached`` is a part of ``input``."""

    input: Amount | None = None
    cached: Amount | None = None
    output: Amount | None = None


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """The whole cost over a million tokens of one kind, at the lower end; cached ones are no ``input`` here."""

    input: Money | None = None
    cached: Money | None = None
    output: Money | None = None


@dataclass(frozen=True, slots=True)
class LengthRatio:
    """Output tokens of an answer over those of the reference's, with its 99.9% interval."""

    ratio: Amount
    low: Amount
    high: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers of a variant, compared with those of the ``reference``; ``equal`` is None where it is undecided.

    ``asked``: fixed questions; ``comparable``: those to which both gave one text; ``differing``: to which another one.
    """

    reference: str
    equal: bool | None = None
    text: str
    asked: Count = 0
    comparable: Count = 0
    differing: Count = 0
    by_text: bool | None = None
    by_length: bool | None = None
    length: LengthRatio | None = None


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A variant; without a ``rank`` there is nothing to compare of it, and ``headline`` says why.

    Rates in requests/s of all ``instances`` that were measured; costs in the price's currency.
    """

    variant: dict[str, str] = field(default_factory=dict)
    capacity: str | None = None
    outcome: str = ""
    headline: str = ""
    rate: Rate | None = None
    interval: Interval | None = None
    limit: str | None = None
    latency: Latency | None = None
    server_utilisation: dict[str, Used] | None = None
    instances: Instances | None = None
    price: Price | None = None
    seconds_to_create: Seconds | None = None
    endpoint: Endpoint | None = None
    ended: Ended | None = None
    confirmed: Verdict | None = None
    exit_code: ExitCode | None = None
    warnings: list[str] = field(default_factory=list)
    instances_for_target: Instances | None = None
    cost_hour: Money | None = None
    cost_month: Money | None = None
    cost_per_million: Money | None = None
    cost_per_million_tokens: Money | None = None
    tokens_each: TokensEach | None = field(default=None, metadata=OMITTED)
    token_costs: TokenCosts | None = field(default=None, metadata=OMITTED)
    answers: Answers | None = field(default=None, metadata=OMITTED)
    label: str = ""
    rank: Rank | None = None
    tied_with: list[Rank] = field(default_factory=list)
    score: Score | None = None

    @property
    def measured_on(self) -> int:
        """The instances whose rate together is the row's; one where nobody knows."""
        return self.instances or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffics:
    """Several traffics to an endpoint: whether they are equivalent, None where it is undecided."""

    equivalent: bool | None = None
    text: str
    within: Share | None = None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A row of Inference Recommender, in its own words and units; ``rate``: MaxInvocations, in requests/s."""

    instance_type: str | None = None
    instances: int | None = None
    env: dict[str, str] = field(default_factory=dict)
    rate: Number | None = None
    CostPerHour: Number | None = None
    CostPerInference: Number | None = None
    MaxInvocations: Number | None = None
    ModelLatency: Number | None = None
    CpuUtilization: Number | None = None
    MemoryUtilization: Number | None = None


@dataclass(frozen=True, slots=True)
class Recommender:
    """A job of Inference Recommender."""

    job: str
    status: str
    note: str
    reason: str | None
    rows: list[Recommendation]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingResult:
    """The whole result of a ranking: the rows in their order, those without a rank last."""

    schema_version: Version
    target_rps: Positive | None = None
    utilisation: Share = 0.7
    ranked_by: By = "rate"
    interrupted: bool = False
    exit_code: ExitCode = 0
    rows: list[RankedRow]
    payload_variants: Traffics | None = None
    remarks: list[str] = field(default_factory=list)
    created: str | None = None
    recommender: Recommender | None = None
    quotas: list[StatedQuota] | None = None
    spend: Spend | None = None
    headline: str = ""
    built_on: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
