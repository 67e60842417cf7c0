"""The rules by which instances are added and removed, as Application Auto Scaling and Kubernetes have them. Pure.

Target tracking adds where the last three datapoints are above the target, and removes where those of fifteen minutes
are below 90% of it: the alarms that it makes. The 10-second metric of concurrency has three of its own datapoints, and
those of fifteen minutes, too. The new number is what would bring the last datapoint to the target.

A HorizontalPodAutoscaler, which KEDA makes as well, decides every 15 seconds: at once where it adds, and by the most
that it wanted in the last five minutes where it removes. KEDA's ``cooldownPeriod`` acts on the step to zero alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.models.fleet.service import Service

Metric = Literal["invocations", "concurrency", "cpu", "requests"]
"""Of an instance: requests a minute, requests without an answer on average, CPU; of all of them: requests a period."""

MINUTE_S = 60.0
SYNC_S = 15.0
PERIODS_S = {"invocations": MINUTE_S, "concurrency": 10.0, "cpu": MINUTE_S, "requests": SYNC_S}
COOLDOWN_S = 300.0
STABLE_S = 300.0
"""Of a HorizontalPodAutoscaler: pods are removed by the most that was wanted for so long."""

STEPS = ((0.0, 10.0), (0.1, 25.0), (0.25, 50.0), (0.5, 100.0), (1.0, 200.0))
"""Of step scaling: a share of the threshold by which a metric is above it, and the percent of instances added then."""

REMOVED = 10.0
"""Of step scaling: the percent of instances that are removed at once."""

_OUT, _IN_S, _IN_BELOW = 3, 900.0, 0.9
_LEAST_GAP, _MARGIN = 0.85, 0.95
_TOLERANCE, _PODS_ADDED, _TIMES_ADDED = 0.1, 4, 2  # a HorizontalPodAutoscaler's own, where nothing else is asked
_EXACT = 1e-9  # of an instance: what is a whole number but for rounding


class Policy(Protocol):
    """A rule that wants a number of instances, by the datapoints of its metric."""

    @property
    def metric(self) -> Metric | None:
        """The metric that it follows; None: none."""

    @property
    def name(self) -> str:
        """Its name for people."""

    def first(self, rate: float, service: Service) -> int:
        """The instances at the beginning, where the rate (requests/s) has been what it is for long."""

    def wanted(self, datapoints: Sequence[float], instances: int) -> int:
        """The number of instances that the last datapoints, oldest first, ask for."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """As many instances all the time."""

    instances: int
    metric: Metric | None = None

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{self.instances} instances, fixed" if self.instances != 1 else "1 instance, fixed"

    def first(self, rate: float, service: Service) -> int:  # noqa: ARG002 - as those that scale
        """The instances that its rule asks for at such a rate (requests/s)."""
        return self.instances

    def wanted(self, datapoints: Sequence[float], instances: int) -> int:  # noqa: ARG002
        """The number that the last datapoints ask for."""
        return self.instances


@dataclass(frozen=True, slots=True)
class CpuUse:
    """An instance's CPU as a metric shows it: ``idle`` where it serves nothing, ``per_rps`` more for each request/s."""

    idle: float
    per_rps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The part that all that scale have: a metric, how many instances at least and at most, and times in seconds.

    ``instance_start_s``: from the change until new instances take requests. ``minute_s``: what the rules call a minute.
    ``rps``: the requests/s of an instance at its target; None: those that its services alone make of it. ``cpu``: what
    its metric shows of CPU; None: the percent of servers that are busy. ``waits``: a change waits for the last one.
    """

    metric: Metric
    minimum: int
    maximum: int
    instance_start_s: float
    cooldown_out_s: float = COOLDOWN_S
    cooldown_in_s: float = COOLDOWN_S
    minute_s: float = MINUTE_S
    rps: float | None = None
    cpu: CpuUse | None = None
    waits: ClassVar[bool] = True

    @property
    def period_s(self) -> float:
        """The seconds of a datapoint."""
        return PERIODS_S[self.metric] * self.minute_s / MINUTE_S

    def clamped(self, instances: float) -> int:
        """Within the minimum and the maximum."""
        return max(self.minimum, min(self.maximum, math.ceil(instances - _EXACT)))

    def all_above(self, datapoints: Sequence[float], value: float) -> bool:
        """Tells whether the alarm that adds has gone off."""
        return len(datapoints) >= _OUT and all(each > value for each in datapoints[-_OUT:])

    def all_below(self, datapoints: Sequence[float], value: float) -> bool:
        """Tells whether the alarm that removes has gone off."""
        number = round(_IN_S / PERIODS_S[self.metric])
        return len(datapoints) >= number and all(each < value for each in datapoints[-number:])

    def needed(self, value: float, rate: float, service: Service) -> int:
        """The instances on which the metric is at most this value at a steady rate (requests/s), about."""
        if self.rps is not None:
            return self.clamped(rate / self.rps)
        busy = rate * service.mean_s
        load = {
            "invocations": rate * self.minute_s,
            "concurrency": busy,
            "cpu": 100 * busy / service.servers,
            "requests": rate,
        }[self.metric]
        return self.clamped(load / value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTracking(Scaling):
    """Keeps a metric near ``target``, in the metric's unit."""

    target: float

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"target tracking on {self.metric}"

    def first(self, rate: float, service: Service) -> int:
        """The instances that its rule asks for at such a rate (requests/s)."""
        return self.needed(self.target, rate, service)

    def wanted(self, datapoints: Sequence[float], instances: int) -> int:
        """The number that the last datapoints ask for."""
        if self.all_above(datapoints, self.target) or self.all_below(datapoints, _IN_BELOW * self.target):
            return self.clamped(instances * datapoints[-1] / self.target)
        return instances


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScaling(Scaling):
    """Two alarms: above ``high`` instances are added by ``STEPS``, below ``low`` ``REMOVED`` percent are removed.

    Percents become instances as AWS rounds them: towards none, and at least one.
    """

    high: float
    low: float

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"step scaling on {self.metric}"

    def first(self, rate: float, service: Service) -> int:
        """The instances that its rule asks for at such a rate (requests/s)."""
        return self.needed(self.high, rate, service)

    def wanted(self, datapoints: Sequence[float], instances: int) -> int:
        """The number that the last datapoints ask for."""
        if self.all_above(datapoints, self.high):
            above = datapoints[-1] / self.high - 1
            return self.clamped(instances + _by(instances, max(percent for least, percent in STEPS if above >= least)))
        return self.clamped(instances - _by(instances, REMOVED)) if self.all_below(datapoints, self.low) else instances


@dataclass(frozen=True, slots=True, kw_only=True)
class PodScaling(Scaling):
    """Keeps the requests/s of a pod near ``target``, by the rate of all pods over the last minute."""

    target: float
    waits: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Its name for people."""
        return "HPA or KEDA on requests/s"

    def first(self, rate: float, service: Service) -> int:
        """The pods that its rule asks for at such a rate (requests/s)."""
        return self.needed(self.target, rate, service)

    def wanted(self, datapoints: Sequence[float], instances: int) -> int:
        """The number that the last minute asks for, or the most that those of the last five minutes did."""
        asked = [self._asked(each, instances) for each in self._rates(datapoints)]
        if asked[-1] > instances:
            return min(asked[-1], max(_TIMES_ADDED * instances, instances + _PODS_ADDED))
        return min(instances, max(asked))

    def _rates(self, datapoints: Sequence[float]) -> list[float]:
        """The requests/s over a minute, at each of the instants at which it has decided."""
        a_minute = round(MINUTE_S / SYNC_S)
        ends = range(max(1, len(datapoints) - round(STABLE_S / SYNC_S) + 1), len(datapoints) + 1)
        parts = [datapoints[max(0, end - a_minute) : end] for end in ends]
        return [sum(part) / (len(part) * self.period_s) for part in parts]

    def _asked(self, rate: float, instances: int) -> int:
        if abs(rate / (self.target * instances) - 1) <= _TOLERANCE:
            return self.clamped(instances)
        return self.clamped(rate / self.target)


def step_low(high: float, minimum: int) -> float:
    """The threshold of the alarm that removes: with what is removed the rest stays below ``high``, even of few."""
    few = max(1, minimum)
    return high * min(_LEAST_GAP, _MARGIN * few / (few + 1))


def _by(instances: int, percent: float) -> int:
    return max(1, int(instances * percent / 100 + _EXACT))
