"""The queueing model of an endpoint, and its answers to what was not measured. Pure."""

from dataclasses import dataclass, field
from typing import Any

from server_capacity.results.types.bounds import (
    Amount,
    Count,
    Extrapolated,
    Interval,
    Number,
    Positive,
    Rate,
    Seconds,
)


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
class Prediction:
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
    misfit: dict[str, Prediction] | None = None
    limit: str | None = None
    rate: Extrapolated | None = None
    interval: Interval | None = None
    confirmed_at: Rate | None = None
    what_if: Extrapolations | None = None
