"""The instances of the server in ``summary.json``: their course, and what scaled them. Pure."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """A line of the table of events; ``since_s``: after the rise of the load that it answers, where it answers one."""

    at_s: float
    kind: Literal["load", "alarm", "asked", "served", "failed"]
    text: str
    since_s: float | None = None


@dataclass(frozen=True, slots=True)
class InstanceStep:
    """The instances from an instant on: ``current`` serve, ``desired`` are requested."""

    at_s: float
    current: float
    desired: float | None
    status: str | None


@dataclass(frozen=True, slots=True)
class FollowedInstances:
    """The instances of one variant or query; ``changes`` from one number to another, and when they happened."""

    of: str
    source: str
    steps: list[InstanceStep]
    changes: list[dict[str, float | None]]
    events: list[InstanceEvent]
    remarks: list[str]


@dataclass(frozen=True, slots=True)
class LimitsMissed:
    """The ``spans`` in which limits were missed, each stretch of ``step_s`` judged by itself."""

    limits: list[str]
    seconds: float
    step_s: float
    spans: list[tuple[float, float]]
    failed: int


@dataclass(frozen=True, slots=True)
class Instances:
    """The server's instances while the wave ran, and when limits were missed meanwhile."""

    followed: list[FollowedInstances]
    limits_missed: LimitsMissed | None
