"""The records that AWS keeps of scaling: targets, policies, alarms, activities. Instants are epoch seconds."""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.embedded.scaling.target_tracking import AlarmState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from inference_benchmarker.embedded.scaling.step_scaling import StepScaling
    from inference_benchmarker.embedded.scaling.target_tracking import MetricAlarm, Scaling, TargetTracking

_KEPT = 1000


def new_id() -> str:
    """An id as AWS gives them."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class MetricSource:
    """The metric that an alarm looks at, in CloudWatch's words, with a datapoint every ``period_s``.

    ``read`` gives the datapoint of the periods that have just ended, so many of them; None where it is missing.
    """

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    statistic: str
    unit: str | None
    read: Callable[[int, int], float | None]
    period_s: int


class HistoryItem(NamedTuple):
    """An entry of an alarm's history: its kind and summary are CloudWatch's, its data an object."""

    at: float
    kind: str
    summary: str
    data: Mapping[str, Any]


class AlarmRecord:
    """An alarm of a policy: its name, its metric, its state since when and why, and what became of it.

    ``description`` is its maker's; None: it was made by the policy.
    """

    def __init__(
        self, name: str, alarm: MetricAlarm, source: MetricSource, created_at: float, description: str | None = None
    ) -> None:
        self.name = name
        self.alarm = alarm
        self.source = source
        self.description = description
        self.created_at = self.updated_at = created_at
        self.reason = "Unchecked: the alarm has just been made"
        self.reason_data: dict[str, Any] = {}
        self.history: deque[HistoryItem] = deque(maxlen=_KEPT)
        self.add(created_at, "ConfigurationUpdate", f'Alarm "{name}" created', {"type": "Create"})

    def add(self, at: float, kind: str, summary: str, data: Mapping[str, Any]) -> None:
        """Note what happened."""
        self.history.append(HistoryItem(at, kind, summary, {"version": "1.0", **data}))

    def changed(self, before: AlarmState, at: float) -> None:
        """Note that its state is another one since then."""
        old = {"stateValue": before, "stateReason": self.reason, "stateReasonData": self.reason_data}
        self.updated_at = at
        self.reason, self.reason_data = self._reason(), self._reason_data()
        new = {"stateValue": self.alarm.state, "stateReason": self.reason, "stateReasonData": self.reason_data}
        self.add(
            at,
            "StateUpdate",
            f"Alarm updated from {before} to {self.alarm.state}",
            {"oldState": old, "newState": new},
        )

    def _reason(self) -> str:
        alarm = self.alarm
        if alarm.state is AlarmState.INSUFFICIENT_DATA:
            return f"Insufficient Data: {alarm.periods} datapoints were missing"
        text = ", ".join(f"{value:g}" for value in alarm.values)
        beyond = "greater than" if alarm.above else "less than"
        were = "all" if alarm.state is AlarmState.ALARM else "not all"
        return f"Threshold Crossed: the datapoints [{text}] were {were} {beyond} the threshold ({alarm.threshold:g})"

    def _reason_data(self) -> dict[str, Any]:
        return {
            "version": "1.0",
            "statistic": self.source.statistic,
            "period": self.source.period_s,
            "recentDatapoints": self.alarm.values,
            "threshold": self.alarm.threshold,
        }


@dataclass(frozen=True, slots=True)
class Policy:
    """A scaling policy. ``configuration`` is as the user gave it; its alarms are those of ``rule``."""

    name: str
    id: str
    created_at: float
    configuration: Mapping[str, Any]
    rule: TargetTracking | StepScaling
    alarms: list[AlarmRecord]

    def alarm_of(self, alarm: MetricAlarm) -> AlarmRecord:
        """The record of one of its alarms."""
        return next(record for record in self.alarms if record.alarm is alarm)


@dataclass(slots=True)
class Target:
    """A scalable target: a variant of the endpoint ``endpoint_name``, its bounds, and its policies by name."""

    endpoint_name: str
    resource_id: str
    id: str
    created_at: float
    scaling: Scaling
    schedule_suspended: bool = False
    policies: dict[str, Policy] = field(default_factory=dict)


@dataclass(slots=True)
class Activity:
    """A change of the number of instances, or why there was none (``reason``: code and numbers, as AWS reports it)."""

    resource_id: str
    description: str
    cause: str
    started_at: float
    status: str
    message: str
    ended_at: float | None = None
    reason: Mapping[str, Any] | None = None
    id: str = field(default_factory=new_id)
