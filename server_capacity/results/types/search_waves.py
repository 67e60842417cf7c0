"""The findings of the waves of a search: stretches at one rate, points of the curve, limits, confirmations. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from inference_benchmarker.data.decoded import OMITTED
from server_capacity.results.types.bounds import (
    Amount,
    Count,
    ExitCode,
    Extrapolated,
    Interval,
    Number,
    Rate,
    Seconds,
    Share,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A limit, the rate at which it is violated, and its value at the interval's lower end."""

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
    """A wave at the answer. ``spoilt``: why it does not count, or empty, and by whom.

    ``invalid``: why its own verdict is INVALID although it counts here: a lag that is short beside the limits.
    """

    directory: str = ""
    rate: Rate
    seconds: Seconds | None = None
    soak: bool = False
    verdict: Verdict
    spoilt: str = ""
    spoilt_by: Literal["server", "client"] | None = None
    invalid: str = field(default="", metadata=OMITTED)
    exit_code: ExitCode | None = None
    limits: list[ConfirmedLimit] = field(default_factory=list)
    server_metrics: dict[str, dict[str, float | None]] = field(default_factory=dict)


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
