"""Target tracking as Application Auto Scaling does it: two alarms, how many instances, cooldowns. Pure.

The sources of the figures, all of AWS: "How target tracking scaling works" of the Application Auto Scaling User Guide
[tracking], the documentation of TargetTrackingScalingPolicyConfiguration and RegisterScalableTarget in the API
[API], "Configuring how CloudWatch alarms treat missing data" of the CloudWatch User Guide [missing]. The number of
datapoints and the 90% are in no document: they are those of the alarms that AWS makes for a SageMaker variant [alarms].
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable

# A datapoint a minute: so many above the target, so many below that share of it [alarms].
PERIOD_S = 60
OUT_DATAPOINTS, IN_DATAPOINTS = 3, 15
IN_SHARE = 0.9
# A high-resolution metric has a datapoint every ten seconds: three ask for instances, those of 15 minutes let some end.
HIGH_RESOLUTION_S = 10
HIGH_RESOLUTION_IN_DATAPOINTS = IN_DATAPOINTS * PERIOD_S // HIGH_RESOLUTION_S
# The default of a SageMaker variant, both ways [tracking].
COOLDOWN_S = 300


class AlarmState(StrEnum):
    """The state of an alarm, in CloudWatch's words."""

    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


IfMissing = Literal["missing", "breaching", "notBreaching"]


class MetricAlarm:
    """An alarm over the newest ``periods`` datapoints, all of which must be beyond the threshold.

    A datapoint that is missing says nothing [missing]: with none at all there is insufficient data, with one inside
    the threshold the alarm is OK. It goes off when the oldest of its datapoints and all that came since are beyond.
    With ``if_missing`` breaching it counts as beyond, with notBreaching as inside. ``inclusive``: the threshold itself
    is beyond.
    """

    def __init__(
        self,
        threshold: float,
        periods: int,
        *,
        above: bool,
        inclusive: bool = False,
        if_missing: IfMissing = "missing",
    ) -> None:
        self.threshold = threshold
        self.periods = periods
        self.above = above
        self.inclusive = inclusive
        self.if_missing = if_missing
        self.state = AlarmState.INSUFFICIENT_DATA
        self.datapoints: deque[float | None] = deque(maxlen=periods)

    @property
    def values(self) -> list[float]:
        """The datapoints that are not missing, oldest first."""
        return [value for value in self.datapoints if value is not None]

    def observe(self, value: float | None) -> bool:
        """Take the next datapoint, None where it is missing: tells whether the state is another now."""
        self.datapoints.append(value)
        before, self.state = self.state, self._evaluate()
        return self.state is not before

    def _evaluate(self) -> AlarmState:
        says_nothing = self.if_missing == "missing"
        if says_nothing and not self.values:
            return AlarmState.INSUFFICIENT_DATA
        if not all(map(self._is_beyond, self.values if says_nothing else self.datapoints)):
            return AlarmState.OK
        whole = len(self.datapoints) == self.periods and not (says_nothing and self.datapoints[0] is None)
        return AlarmState.ALARM if whole else self.state

    def _is_beyond(self, value: float | None) -> bool:
        if value is None:
            return self.if_missing == "breaching"
        if value == self.threshold:
            return self.inclusive
        return (value > self.threshold) is self.above


@dataclass(frozen=True, slots=True)
class Tracking:
    """The settings of a policy: its target in the metric's unit, cooldowns in ns, and whether it may scale in.

    ``in_datapoints``: those of 15 minutes.
    """

    target: float
    out_cooldown_ns: int = COOLDOWN_S * NS
    in_cooldown_ns: int = COOLDOWN_S * NS
    scale_in: bool = True
    in_datapoints: int = IN_DATAPOINTS


class Cooldowns(Protocol):
    """The part of any policy's settings that scaling looks at, in ns."""

    @property
    def out_cooldown_ns(self) -> int:
        """After scaling out."""

    @property
    def in_cooldown_ns(self) -> int:
        """After scaling in."""


class Rule(Protocol):
    """A policy of any kind: the alarms that ask for more and for fewer instances, and how many they want."""

    @property
    def settings(self) -> Cooldowns:
        """Its cooldowns."""

    @property
    def high(self) -> MetricAlarm | None:
        """The alarm that asks for more."""

    @property
    def low(self) -> MetricAlarm | None:
        """The alarm that asks for fewer."""

    def wanted(self, alarm: MetricAlarm, count: int) -> int:
        """The number of instances that an alarm which is on makes of ``count``."""


class TargetTracking:
    """A policy with its alarms. ``low`` is None where the policy may not scale in."""

    def __init__(self, settings: Tracking) -> None:
        self.settings = settings
        self.high = MetricAlarm(settings.target, OUT_DATAPOINTS, above=True)
        below = MetricAlarm(settings.target * IN_SHARE, settings.in_datapoints, above=False)
        self.low = below if settings.scale_in else None

    @property
    def alarms(self) -> list[MetricAlarm]:
        """Those there are."""
        return [self.high, self.low] if self.low else [self.high]

    def wanted(self, alarm: MetricAlarm, count: int) -> int:
        """So many of ``count`` instances as would have the metric at the target, in proportion [tracking].

        Scaling out follows the newest datapoint; scaling in, which AWS calls more gradual, the highest.
        """
        value = alarm.values[-1] if alarm.above else max(alarm.values)
        # Rounded up: one fewer would be beyond the target. A part in 10^9 is the arithmetic's, not the metric's.
        return math.ceil(count * value / self.settings.target * (1 - 1e-9))


@dataclass(frozen=True, slots=True)
class Decision:
    """The wish of an alarm that is on: ``wanted`` instances by the metric, ``count`` within the bounds."""

    policy: Rule
    alarm: MetricAlarm
    wanted: int
    count: int


class Scaling:
    """The bounds of a scalable target, what is suspended, and the cooldown that is under way.

    ``minimum`` may be 0 [API], but an endpoint without an inference component keeps one instance.
    """

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.out_suspended = False
        self.in_suspended = False
        self._out_until = self._in_until = 0
        # How many there were before the scaling out whose cooldown is under way.
        self._before = 0

    def bounded(self, count: int) -> int:
        """The nearest number of instances within the bounds."""
        return max(1, self.minimum, min(self.maximum, count))

    def decide(self, policies: Iterable[Rule], count: int, now_ns: int) -> Decision | None:
        """A decision on ``count`` instances, none of which is on its way; None: no alarm asks for anything.

        Whoever wants most is followed, and all must want fewer for there to be fewer [tracking]. The decision's
        count may be the one there is: the bounds allow no other.
        """
        policies = list(policies)
        return self._out(policies, count, now_ns) or self._in(policies, count, now_ns)

    def completed(self, policy: Rule, before: int, after: int, now_ns: int) -> None:
        """A decision of that policy is carried out: its cooldown begins, and one of the other direction ends [API]."""
        self._before = before
        self._out_until = now_ns + policy.settings.out_cooldown_ns if after > before else 0
        self._in_until = now_ns + policy.settings.in_cooldown_ns if after < before else 0

    def _out(self, policies: list[Rule], count: int, now_ns: int) -> Decision | None:
        """In a cooldown, what it has added counts as a part of what is wanted: only more than that is added [API]."""
        high = [(policy, policy.high) for policy in policies if policy.high]
        on = [(policy, alarm) for policy, alarm in high if alarm.state is AlarmState.ALARM]
        if not on or self.out_suspended:
            return None
        policy, alarm = max(on, key=lambda each: each[0].wanted(each[1], count))
        wanted = policy.wanted(alarm, count)
        if now_ns < self._out_until:
            wanted = self._before + wanted - count
        return Decision(policy, alarm, wanted, max(count, self.bounded(wanted))) if wanted > count else None

    def _in(self, policies: list[Rule], count: int, now_ns: int) -> Decision | None:
        """In a cooldown, nothing is taken away [API]."""
        low = [(policy, policy.low) for policy in policies if policy.low]
        if not low or self.in_suspended or now_ns < self._in_until:
            return None
        if any(alarm.state is not AlarmState.ALARM for _, alarm in low):
            return None
        policy, alarm = max(low, key=lambda each: each[0].wanted(each[1], count))
        wanted = policy.wanted(alarm, count)
        return Decision(policy, alarm, wanted, min(count, self.bounded(wanted))) if wanted < count else None
