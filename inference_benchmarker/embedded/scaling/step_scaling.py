"""Step scaling as Application Auto Scaling does it: how many instances by how far a metric is beyond a threshold. Pure.

The source of the rules is "How step scaling works" of the Application Auto Scaling User Guide. The alarms are made by
whoever puts the policy; here one of them may ask for more instances and one for fewer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from inference_benchmarker.embedded.scaling.target_tracking import MetricAlarm

PERCENT, CHANGE, EXACT = "PercentChangeInCapacity", "ChangeInCapacity", "ExactCapacity"
ADJUSTMENTS = (CHANGE, PERCENT, EXACT)
# Of an instance: what is a whole number but for the arithmetic.
_WHOLE = 1e-9


class Step(NamedTuple):
    """An adjustment for a metric that is from ``lower`` to ``upper`` beyond the threshold; infinite where not given."""

    lower: float
    upper: float
    adjustment: int


@dataclass(frozen=True, slots=True)
class Stepping:
    """The settings of a policy: what its adjustments are, its steps, the least change in percent's case, a cooldown."""

    kind: str
    steps: tuple[Step, ...]
    magnitude: int
    cooldown_ns: int

    @property
    def out_cooldown_ns(self) -> int:
        """After scaling out, in ns."""
        return self.cooldown_ns

    @property
    def in_cooldown_ns(self) -> int:
        """After scaling in, in ns."""
        return self.cooldown_ns


class StepScaling:
    """A policy and the alarms that set it off: ``high`` where a metric is above, ``low`` where one is below."""

    def __init__(self, settings: Stepping) -> None:
        self.settings = settings
        self.high: MetricAlarm | None = None
        self.low: MetricAlarm | None = None

    def watch(self, alarm: MetricAlarm) -> None:
        """Be set off by that alarm from now on."""
        if alarm.above:
            self.high = alarm
        else:
            self.low = alarm

    def forget(self, alarm: MetricAlarm) -> None:
        """Be set off by that alarm no more."""
        self.high = None if self.high is alarm else self.high
        self.low = None if self.low is alarm else self.low

    def wanted(self, alarm: MetricAlarm, count: int) -> int:
        """The number of instances that the step of the alarm's newest datapoint makes of ``count``."""
        values = alarm.values
        step = self._step(values[-1] - alarm.threshold, above=alarm.above) if values else None
        if step is None:
            return count
        if self.settings.kind == EXACT:
            return step.adjustment
        return count + (step.adjustment if self.settings.kind == CHANGE else self._part(count, step.adjustment))

    def _step(self, beyond: float, *, above: bool) -> Step | None:
        """Above a threshold a step has its lower bound, below it its upper one."""
        for step in self.settings.steps:
            if step.lower <= beyond < step.upper if above else step.lower < beyond <= step.upper:
                return step
        return None

    def _part(self, count: int, percent: int) -> int:
        """Percent of the instances, in whole ones: towards none, but one at least, and the least change."""
        least = max(1, self.settings.magnitude)
        number = max(least, math.floor(count * abs(percent) / 100 + _WHOLE))
        return number if percent > 0 else -number if percent < 0 else 0
