"""The bounds of what stands in results, and the small parts that several of them have. Pure."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from inference_benchmarker.data.decoded import OMITTED, omitted_without
from inference_benchmarker.version import SCHEMA_VERSION

MOST_RATE = 1e6
"""Requests/s, and users: what a wave can offer."""
MOST = 1e15

Version = Annotated[int, Meta(ge=1, le=SCHEMA_VERSION)]
Rate = Annotated[float, Meta(ge=0, le=MOST_RATE)]
"""Of one wave: requests/s, or users."""
Extrapolated = Annotated[float, Meta(ge=0, le=MOST)]
"""A rate that nobody offered."""
Positive = Annotated[float, Meta(gt=0, le=MOST)]
Amount = Annotated[float, Meta(ge=0, le=MOST)]
Money = Annotated[float, Meta(ge=0, le=1e36)]
"""The cost of as many instances as there may be, each at the highest price, for a month."""
Seconds = Annotated[float, Meta(ge=0, le=MOST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[float, Meta(ge=-MOST, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=10**15)]
Instances = Annotated[int, Meta(ge=1, le=1_000_000_000_000)]
Rank = Annotated[int, Meta(ge=1, le=1_000_000)]
if TYPE_CHECKING:
    ExitCode = int  # the gravest of several is computed
else:
    ExitCode = Literal[0, 1, 2, 3, 130]
Verdict = Literal["holds", "fails", "cannot_tell"]
Ended = Literal["complete", "early", "interrupted"]
CleanUp = Literal["done", "failed"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95% interval, both ends of it inside what was measured."""

    low: Amount
    high: Amount


@dataclass(frozen=True, slots=True)
class Spread:
    """The burstiness of requests over a limit, and d ln(share over) / d ln(rate) of it."""

    dispersion: Number
    slope: Number


_OF_ONE_TYPE = omitted_without("instance_type")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of instances; ``price_per_hour`` of one of ``instance_type``, None in a sum over several types."""

    hour: Money
    month: Money
    per_million: Money | None = field(default=None, metadata=_OF_ONE_TYPE)
    currency: str = "USD"
    region: str | None = field(default=None, metadata=_OF_ONE_TYPE)
    date: str | None = field(default=None, metadata=_OF_ONE_TYPE)
    source: str | None = field(default="", metadata=_OF_ONE_TYPE)
    instance_type: str | None = field(default=None, metadata=OMITTED)
    price_per_hour: Amount | None = field(default=None, metadata=_OF_ONE_TYPE)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The endpoint that was measured, as far as its factory's arguments and SageMaker say."""

    name: str | None = None
    arguments: dict[str, Any] | None = None
    payload_arguments: dict[str, Any] | None = None
    kind: str | None = None
    instance_type: str | None = None
    instances: Instances | None = None
    region: str | None = None
    variant: str | None = None
    routing: str | None = None
    seconds_to_create: Seconds | None = None


@dataclass(frozen=True, slots=True)
class SuspendedTarget:
    """A number that was scaled: by whom, and what of that had been suspended before."""

    resource: str = ""
    dimension: str = ""
    policies: list[str] = field(default_factory=list)
    schedules: list[str] = field(default_factory=list)
    suspended_before: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suspended:
    """The scaling that was suspended; ``put_back``: None while nobody knows."""

    targets: list[SuspendedTarget] = field(default_factory=list)
    put_back: bool | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of an account, compared with the instances that are needed."""

    name: str | None = None
    instance_type: str | None = None
    region: str | None = None
    code: str | None = None
    limit: Count | None = None
    needed: Count | None = None
    enough: bool | None = None
    increase: str | None = None


@dataclass(frozen=True, slots=True)
class StatedQuota(Quota):
    """A quota with a sentence where it is too small, None where it is enough."""

    text: str | None = None


@dataclass(frozen=True, slots=True)
class Spend:
    """The cost of making endpoints: ``cost`` is None where the price of one is not known, ``known`` is the rest."""

    endpoints: Count
    instance_hours: Amount
    seconds: Seconds
    cost: Money | None
    known: Money | None
    currency: str | None
    unpriced: list[str]
