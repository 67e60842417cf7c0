"""The proof of a plan: ``proof.json``. Rates in requests/s, times in seconds. Pure."""

from dataclasses import dataclass, field
from typing import Any, Literal

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
    Quota,
    Seconds,
    Share,
    Verdict,
    Version,
)


@dataclass(frozen=True, slots=True)
class ProofLength:
    """The time that was planned, and what it can tell."""

    seconds: Positive
    warmup_s: Seconds
    needed_s: Seconds | None = None
    rejects_one_short: Share = 0.0
    holds_if_right: Share = 0.0
    by_measured_bursts: bool = False


@dataclass(frozen=True, slots=True)
class ProvenLimit:
    """A limit with its value, and the share over it with the interval that bursts leave."""

    expression: str
    verdict: Verdict
    value: Number | None = None
    text: str | None = None
    met: bool | None = None
    reason: str = ""
    allowed: Share | None = None
    share_over: Share | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Of the answers."""

    p50: Seconds | None = None
    p99: Seconds | None = None


@dataclass(frozen=True, slots=True)
class ProofResult:
    """All that a proof tells.

    ``plan_exit_code`` and ``warnings``: of the plan that it is a proof of. ``ended_early``: why its wave was not sent
    to its end, None where it was.
    """

    schema_version: Version
    outcome: Literal["holds", "fails", "cannot_tell", "interrupted"]
    exit_code: ExitCode
    instances: Instances
    target_rps: Positive
    length: ProofLength
    headline: str = ""
    created: str | None = None
    reason: str | None = None
    plan: str | None = None
    plan_exit_code: ExitCode | None = None
    warnings: list[str] = field(default_factory=list)
    name: str | None = None
    endpoint: Endpoint | None = None
    instance_type: str | None = None
    sent: Count = 0
    sent_s: Amount = 0.0
    backlog: Count = 0
    limits: list[ProvenLimit] = field(default_factory=list)
    latency: Times | None = None
    server_metrics: dict[str, Any] = field(default_factory=dict)
    directory: str = ""
    ended_early: str | None = None
    quotas: list[Quota] | None = None
    spend: dict[str, Any] | None = None
    suspended: dict[str, Any] | None = None
    clean_up: CleanUp | None = None
    digest: str | None = None
    built_on: dict[str, str] | None = None
