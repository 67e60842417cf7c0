"""The bounds of what stands in results, and the small parts that several of them have. Pure."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

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
Seconds = Annotated[float, Meta(ge=0, le=MOST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[float, Meta(ge=-MOST, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=10**15)]
Instances = Annotated[int, Meta(ge=1, le=1_000_000)]
Rank = Annotated[int, Meta(ge=1, le=1_000_000)]
ExitCode = Literal[0, 1, 2, 3, 130]
Verdict = Literal["holds", "fails", "cannot_tell"]
Ended = Literal["complete", "early", "interrupted"]
CleanUp = Literal["done", "failed"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95% interval, both ends of it among what is told."""

    low: Amount
    high: Amount


@dataclass(frozen=True, slots=True)
class Spread:
    """The burstiness of requests over a limit, and d ln(share over) / d ln(rate) of it."""

    dispersion: Number
    slope: Number


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of instances; ``price_per_hour`` of one of ``instance_type``, None in a sum over several types."""

    hour: Amount
    month: Amount
    currency: str = "USD"
    per_million: Amount | None = None
    region: str | None = None
    date: str | None = None
    source: str = ""
    instance_type: str | None = None
    price_per_hour: Amount | None = None


@dataclass(frozen=True, slots=True)
class Priced:
    """The price of an hour of an instance."""

    instance_type: str
    per_hour: Positive
    currency: str = "USD"
    region: str | None = None
    date: str | None = None
    source: str | None = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The endpoint that was measured, as far as its factory's arguments and SageMaker tell."""

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
class Quota:
    """A quota of an account, held against the instances that are needed."""

    text: str | None = None
    name: str | None = None
    instance_type: str | None = None
    region: str | None = None
    code: str | None = None
    limit: Count | None = None
    needed: Count | None = None
    enough: bool | None = None
    increase: str | None = None
