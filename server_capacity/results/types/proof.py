"""The proof of a plan: ``proof.json``. Rates in requests/s, times in seconds. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from inference_benchmarker.data.decoded import OMITTED
from server_capacity.results.types.bounds import (
    Amount,
    CleanUp,
    Count,
    Endpoint,
    ExitCode,
    Instances,
    Interval,
    Number,
    Positive,
    Seconds,
    Share,
    Spend,
    StatedQuota,
    Suspended,
    Verdict,
    Version,
)

Outcome = Literal["holds", "fails", "cannot_tell", "interrupted"]


@dataclass(frozen=True, slots=True)
class ProofLength:
    """The time that was planned, and what it can tell."""

    seconds: Positive
    warmup_s: Seconds
    needed_s: Seconds | None = None
    rejects_one_short: Share = 0.0
    holds_if_right: Share = 0.0
    by_measured_bursts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenLimit:
    """A limit with its value, and the share over it with the interval that bursts leave."""

    expression: str
    value: Number | None = None
    text: str | None = None
    met: bool | None = None
    verdict: Verdict
    reason: str | None = field(default=None, metadata=OMITTED)
    allowed: Share | None = None
    share_over: Share | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Of the answers."""

    p50: Seconds | None = None
    p99: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofResult:
    """The whole result of a proof.

    ``plan_exit_code`` and ``warnings``: of the plan that it is a proof of. ``ended_early``: why its wave was not sent
    to its end, None where it was. ``differences``: clauses on the requests that are not those of the plan's search.
    ``plan_limits``: those that the plan is for, None in files of earlier versions. ``hidden``: clauses on all that
    speaks against counting its answers as a success, and on each endpoint_factory that did not end well.
    """

    schema_version: Version
    created: str | None = None
    outcome: Outcome
    exit_code: ExitCode
    reason: str | None = None
    plan: str | None = None
    plan_exit_code: ExitCode | None = None
    warnings: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    plan_limits: list[str] | None = None
    name: str | None = None
    endpoint: Endpoint | None = None
    instance_type: str | None = None
    instances: Instances
    target_rps: Positive
    length: ProofLength
    sent: Count
    sent_s: Amount
    ended_early: str | None = None
    backlog: Count = 0
    limits: list[ProvenLimit]
    latency: Times | None = None
    server_metrics: dict[str, dict[str, float | None]] = field(default_factory=dict)
    directory: str = ""
    quotas: list[StatedQuota] | None = None
    spend: Spend | None = None
    headline: str = ""
    built_on: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
    suspended: Suspended | None = None
    clean_up: CleanUp | None = None
    hidden: list[str] | None = field(default=None, metadata=OMITTED)
