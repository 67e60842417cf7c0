"""The server beside an answer: its memory, a slow-down, its resources, and the parts of its time. Pure."""

from dataclasses import dataclass, field

from server_capacity.results.types.bounds import (
    Extrapolated,
    Interval,
    Number,
    Rate,
    Seconds,
    Share,
)


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
class WhereTimeWent:
    """The time of a request at the interval's lower end, in parts."""

    metric: str | None = None
    mean_s: Seconds | None = None
    unloaded_s: Seconds | None = None
    waiting_s: Seconds | None = None
    lines: list[str] = field(default_factory=list)
