"""The answer of a search: ``capacity.json``. Rates in requests/s (or users, see ``in_``), times in seconds. Pure.

Keys that came later have a default, so that older files load; what a file does not tell is None.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from inference_benchmarker.data.decoded import OMITTED, named
from server_capacity.results.types.bounds import (
    Amount,
    CleanUp,
    Count,
    Ended,
    Endpoint,
    ExitCode,
    Extrapolated,
    Interval,
    Number,
    Positive,
    Rate,
    Seconds,
    Share,
    Suspended,
    Verdict,
    Version,
)

Outcome = Literal["found", "at_least", "client_limited", "not_kept", "cannot_tell", "interrupted"]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The highest rate that was kept where none was found, and why no more is known."""

    rate: Rate
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A limit, the rate at which it gives out, and its value at the interval's lower end."""

    expression: str
    metric: str | None = None
    allowed: Share | None = None
    bound: Number | None = None
    unit: str | None = None
    rate: Extrapolated | None = None
    interval: Interval | None = None
    slope: Number | None = None
    dispersion: Number | None = None
    kept_everywhere: bool = False
    reason: str | None = field(default=None, metadata=OMITTED)
    at_low: Number | None = None
    at_low_text: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the curve: all stretches at one rate that count."""

    rate: Rate
    seconds: Seconds | None = None
    sent: Count | None = None
    mean: Seconds | None = None
    p50: Seconds | None = None
    p90: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None
    success: Share | None = None
    share_over: list[Share | None] = field(default_factory=list)
    completed_rate: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StretchRow:
    """A stretch of a wave at one rate; ``void``: why it counts for nothing, or empty."""

    number: Count
    wave: str = ""
    purpose: str = ""
    rate: Rate
    start_s: Seconds
    end_s: Seconds
    sent: Count
    answered: Count
    failed: Count
    share_over: list[Share | None] = field(default_factory=list)
    p50: Seconds | None = None
    p99: Seconds | None = None
    in_flight: Count = 0
    void: str = ""
    direction: Literal["below", "above"] | None = None
    metrics: dict[str, float] | None = None
    tokens_per_s: Amount | None = None
    labels: dict[str, Count] | None = None


@dataclass(frozen=True, slots=True)
class ConfirmedLimit:
    """A limit in a wave at the answer."""

    expression: str
    value: Number | None = None
    text: str | None = None
    met: bool | None = None
    verdict: Verdict | None = None
    reason: str | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A wave at the answer. ``spoilt``: why it tells nothing, or empty, and by whom."""

    directory: str = ""
    rate: Rate
    seconds: Seconds | None = None
    soak: bool = False
    verdict: Verdict
    spoilt: str = ""
    spoilt_by: Literal["server", "client"] | None = None
    exit_code: ExitCode | None = None
    limits: list[ConfirmedLimit] = field(default_factory=list)
    server_metrics: dict[str, dict[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Side:
    """The answer of one direction, where the endpoint remembers what it got before."""

    rate: Rate | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """The answers from below and from above."""

    below: Side
    above: Side
    differ: bool = True


@dataclass(frozen=True, slots=True)
class At:
    """A stretch, its share over the limit, and the mean time of its answers."""

    rate: Rate
    start_s: Seconds
    share: Share
    mean_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Slower:
    """An endpoint that got slower with time; ``early``: the answer of what came until ``until_s``."""

    before: At
    after: At
    until_s: Seconds
    early: Side


@dataclass(frozen=True, slots=True)
class Windows:
    """One-minute windows at the interval's lower end; ``windows`` 0: the share is foretold."""

    seconds: Seconds
    windows: Count = 0
    kept: Count = 0
    share: Share | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """The use of a resource, in shares of ``unit``; ``rate``: at which it is used up."""

    metric: str
    of: dict[str, str] | None = None
    resource: str | None = None
    statistic: str | None = None
    idle: Number | None = None
    demand_s: Number | None = None
    at_low: Number | None = None
    limit: Number | None = None
    rate: Extrapolated | None = None
    interval: Interval | None = None
    unit: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NextResource:
    """The resource that is used up first."""

    metric: str
    at_low: Number | None = None
    limit: Number | None = None
    rate: Extrapolated | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """All resources, and the one that is used up first."""

    next: NextResource | None = None
    all: list[Resource] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kind:
    """The requests of one label, or of one length."""

    name: str
    requests: Count = 0
    rate: Amount | None = None
    p99: Seconds | None = None
    share_over: list[Share | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Output at the answer."""

    tokens_per_s: Amount | None = None
    requests_per_s: Amount | None = None
    by_label: list[Kind] = field(default_factory=list)
    by_input_length: list[Kind] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The model's rate of so many instances."""

    count: Count
    routing: str
    rate: Extrapolated | None = None


@dataclass(frozen=True, slots=True)
class Extrapolations:
    """The model's answers to what was not measured."""

    even_arrivals: Extrapolated | None = None
    service_20_shorter: Extrapolated | None = None
    instances: list[WhatIf] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Service:
    """The time that a request takes a server of the model."""

    kind: str
    mean: Positive
    cv: Amount


@dataclass(frozen=True, slots=True)
class Foretold:
    """A figure of a wave beside the model's, and the bounds of that by chance: seconds, or a share."""

    name: str
    measured: Number
    predicted: Number
    low: Number
    high: Number
    fits: bool


@dataclass(frozen=True, slots=True)
class Twin:
    """The queueing model of the endpoint; ``reason``: why it does not fit."""

    fits: bool
    reason: str | None = None
    servers: Count | None = None
    service: Service | None = None
    services_s: list[Seconds] | None = None
    overhead_s: Number | None = None
    batch: Any = None
    misfit: dict[str, Foretold] | None = None
    limit: str | None = None
    rate: Extrapolated | None = None
    interval: Interval | None = None
    confirmed_at: Rate | None = None
    what_if: Extrapolations | None = None


@dataclass(frozen=True, slots=True)
class Law:
    """X (R + Z) as ``n``, and that over the ``users`` that there were."""

    x: Amount
    r: Seconds
    z: Seconds
    n: Amount
    users: Count
    over: Amount


@dataclass(frozen=True, slots=True)
class Users:
    """A search in users."""

    users: Rate | None = None
    interval: Interval | None = None
    think: str = "0s"
    think_s: Seconds = 0.0
    response_s: Seconds | None = None
    law: Law | None = None


@dataclass(frozen=True, slots=True)
class WhereTimeWent:
    """The time of a request at the interval's lower end, in parts."""

    metric: str | None = None
    mean_s: Seconds | None = None
    unloaded_s: Seconds | None = None
    waiting_s: Seconds | None = None
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Payloads:
    """The repetitions of each pre-computed payload."""

    count: Count
    sent_each: Amount
    repeated: bool


@dataclass(frozen=True, slots=True)
class SoakWindow:
    """A minute of a long wave."""

    start_s: Seconds
    p50: Seconds | None = None
    p99: Seconds | None = None
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Drift:
    """The straight line through the windows' medians, at both ends."""

    first: Number
    last: Number
    clear: bool


@dataclass(frozen=True, slots=True)
class Soak:
    """The course of the last long wave."""

    seconds: Seconds
    windows: list[SoakWindow] = field(default_factory=list)
    drift: Drift | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """An error's key, and how many requests failed with it."""

    key: str
    count: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityResult:
    """All that a search tells. ``ended``, ``confirmed`` and ``clean_up``: see ``results.standing``."""

    schema_version: Version
    created: str | None = None
    name: str | None = None
    endpoint: Endpoint | None = None
    in_: Literal["rps", "users"] = field(default="rps", metadata=named("in"))
    outcome: Outcome
    exit_code: ExitCode
    rate: Rate | None = None
    limit: str | None = None
    at_least: AtLeast | None = None
    reason: str | None = None
    interval: Interval | None = None
    confidence: Share = 0.95
    arrivals: Literal["poisson", "constant"] | None = None
    cache: Literal["warm", "fresh", "as-is"] | None = None
    seed: int | None = None
    precision_asked: Amount | None = None
    time_asked_s: Seconds | None = None
    load_s: Seconds | None = None
    void_s: Seconds | None = None
    workers: Count | None = None
    limits: list[LimitRow] = field(default_factory=list)
    curve: list[Point] | None = None
    stretches: list[StretchRow] | None = None
    islands: list[Interval] = field(default_factory=list)
    memory: Memory | None = None
    slower: Slower | None = None
    windows: Windows | None = None
    resources: Resources | None = None
    where_time_went: WhereTimeWent | None = None
    tokens: Tokens | None = None
    payloads: Payloads | None = None
    errors: list[Failed] | None = None
    failures: list[str] | None = None
    waves: dict[str, list[str]] | None = None
    confirmation: list[Confirmation] | None = None
    twin: Twin | None = None
    users: Users | None = None
    suspended: Suspended | None = None
    soak: Soak | None = None
    ended: Ended | None = None
    confirmed: Verdict | None = None
    headline: str = ""
    pending: bool | None = field(default=None, metadata=OMITTED)
    built_on: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
    clean_up: CleanUp | None = field(default=None, metadata=OMITTED)
