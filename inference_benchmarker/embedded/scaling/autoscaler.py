"""Application Auto Scaling at work: period by period its alarms look at the metrics, and instances are asked for.

A minute here is ``time_factor`` times as short as the clock's, and so are cooldowns and the start of an instance. What
is counted over such a minute counts as many times as much: a target of 600 invocations is 10 a second, whatever the
factor. Everything has the instant of the wall clock at which it happened.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.embedded.scaling.records import Activity, AlarmRecord, Policy, Target, new_id
from inference_benchmarker.embedded.scaling.step_scaling import StepScaling
from inference_benchmarker.embedded.scaling.target_tracking import PERIOD_S, Scaling
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from inference_benchmarker.embedded.scaling.instances import Instances
    from inference_benchmarker.embedded.scaling.records import MetricSource
    from inference_benchmarker.embedded.scaling.target_tracking import Decision, Rule, TargetTracking

_KEPT = 1000


class _UnderWay(NamedTuple):
    """A change that was asked for: for which target, by which policy if by one, and the number of instances before."""

    activity: Activity
    target: Target
    policy: Rule | None
    before: int


class Autoscaler:
    """Owns the targets, their policies and activities; asks for instances through ``resize``.

    ``wall`` makes epoch seconds of an instant; ``resize`` asks for a number of instances, and ``arrived`` gets when
    they are there.
    """

    def __init__(
        self,
        instances: Instances,
        time_factor: float,
        wall: Callable[[int], float],
        resize: Callable[[int, int], None],
    ) -> None:
        self.period_ns = round(PERIOD_S * NS / time_factor)
        self.targets: dict[str, Target] = {}
        self.activities: deque[Activity] = deque(maxlen=_KEPT)
        self._instances = instances
        self._wall = wall
        self._resize = resize
        self._under_way: _UnderWay | None = None
        # Registered while nothing could be asked for.
        self._to_bound: Target | None = None

    def register(self, endpoint_name: str, resource_id: str, minimum: int, maximum: int, now_ns: int) -> Target:
        """The target with these bounds, new or known. Their instances come or go where there are too few or many."""
        target = self.targets.get(resource_id)
        if target is None:
            target = Target(endpoint_name, resource_id, new_id(), self._wall(now_ns), Scaling(minimum, maximum))
            self.targets[resource_id] = target
        target.scaling.minimum, target.scaling.maximum = minimum, maximum
        self._keep_bounds(target, now_ns)
        return target

    def put_policy(
        self,
        target: Target,
        name: str,
        *,
        configuration: Mapping[str, Any],
        tracking: TargetTracking,
        source: MetricSource,
        now_ns: int,
    ) -> Policy:
        """The policy of that name with its alarms, new or in place of one: then they keep their names."""
        known, at = target.policies.get(name), self._wall(now_ns)
        tracked = known.alarms if known and not isinstance(known.rule, StepScaling) else []
        names = {record.alarm.above: record.name for record in tracked}
        alarms = [
            AlarmRecord(names.get(alarm.above) or _alarm_name(target, above=alarm.above), alarm, source, at)
            for alarm in tracking.alarms
        ]
        return self._put(target, Policy(name, new_id(), at, configuration, tracking, alarms))

    def put_steps(
        self, target: Target, name: str, configuration: Mapping[str, Any], steps: StepScaling, now_ns: int
    ) -> Policy:
        """The policy of that name, without alarms, or in place of one: then those of its user set it off, too."""
        known = target.policies.get(name)
        alarms = known.alarms if known and isinstance(known.rule, StepScaling) else []
        for record in alarms:
            steps.watch(record.alarm)
        return self._put(target, Policy(name, new_id(), self._wall(now_ns), configuration, steps, alarms))

    @staticmethod
    def _put(target: Target, policy: Policy) -> Policy:
        known = target.policies.get(policy.name)
        if known:
            policy = replace(policy, id=known.id, created_at=known.created_at)
        target.policies[policy.name] = policy
        return policy

    def policies(self) -> Iterator[tuple[Target, Policy]]:
        """Every policy with its target."""
        for target in self.targets.values():
            for policy in target.policies.values():
                yield target, policy

    def passed(self, periods: int, now_ns: int, period_s: int = PERIOD_S) -> None:
        """So many periods have ended since the last call: the alarms that look at such see a datapoint for each.

        They are alike; beyond as many as the longest alarm looks at, a further one changes nothing.
        """
        for target in list(self.targets.values()):
            every = [record for policy in target.policies.values() for record in policy.alarms]
            looking = [record for record in every if record.source.period_s == period_s]
            # Two alarms may have one source, which is read once.
            sources = {id(record.source): record.source for record in looking}
            values = {key: source.read(now_ns, periods) for key, source in sources.items()}
            longest = max((record.alarm.periods for record in looking), default=0)
            for _ in range(min(periods, longest)):
                for record in looking:
                    self._observe(record, values[id(record.source)], now_ns)
                self._decide(target, now_ns)

    def arrived(self, now_ns: int) -> None:
        """The instances that were asked for last are there."""
        if self._under_way is not None:
            self._complete(*self._under_way, now_ns)
            self._under_way = None
        if self._to_bound is not None:
            target, self._to_bound = self._to_bound, None
            self._keep_bounds(target, now_ns)

    def _complete(self, activity: Activity, target: Target, policy: Rule | None, before: int, now_ns: int) -> None:
        activity.ended_at = self._wall(now_ns)
        activity.status = "Successful"
        activity.message = (
            f"The desired instance count was set to {self._instances.current}; sagemaker has fulfilled it."
        )
        if policy is not None:
            target.scaling.completed(policy, before, self._instances.current, now_ns)

    def _observe(self, record: AlarmRecord, value: float | None, now_ns: int) -> None:
        before = record.alarm.state
        if record.alarm.observe(value):
            record.changed(before, self._wall(now_ns))

    def _decide(self, target: Target, now_ns: int) -> None:
        if self._instances.updating:  # SageMaker takes no further change meanwhile
            return
        rules = [policy.rule for policy in target.policies.values()]
        decision = target.scaling.decide(rules, self._instances.current, now_ns)
        if decision is None:
            return
        policy = next(each for each in target.policies.values() if each.rule is decision.policy)
        alarm = policy.alarm_of(decision.alarm)
        cause = f"monitor alarm {alarm.name} in state ALARM triggered policy {policy.name}"
        if decision.count == self._instances.current:
            self._note_bound(target, decision, cause, now_ns)
            return
        alarm.add(self._wall(now_ns), "Action", f"Successfully executed action: policy {policy.name}", {})
        self._set(target, decision.count, cause, decision.policy, now_ns)

    def _note_bound(self, target: Target, decision: Decision, cause: str, now_ns: int) -> None:
        """The alarm is on and the bounds allow nothing: recorded once while it goes on."""
        if self.activities and self.activities[-1].reason and self.activities[-1].cause == cause:
            return
        bound, name = (
            (target.scaling.maximum, "MaxCapacity") if decision.alarm.above else (target.scaling.minimum, "MinCapacity")
        )
        at = self._wall(now_ns)
        reason = {"Code": f"AlreadyAt{name}", name: bound, "CurrentCapacity": decision.count}
        description = "Attempting to scale due to alarm triggered"
        message = f"There are {decision.count} instances already, which is the bound."
        self.activities.append(
            Activity(target.resource_id, description, cause, at, "Unfulfilled", message, at, reason=reason)
        )

    def _keep_bounds(self, target: Target, now_ns: int) -> None:
        if self._instances.updating:
            self._to_bound = target
            return
        count = self._instances.current
        bounded = target.scaling.bounded(count)
        if bounded != count:
            which = "minimum" if bounded > count else "maximum"
            self._set(target, bounded, f"{which} capacity was set to {bounded}", None, now_ns)

    def _set(self, target: Target, count: int, cause: str, policy: Rule | None, now_ns: int) -> None:
        description = f"Setting desired instance count to {count}."
        message = f"The desired instance count was set to {count}; waiting for sagemaker to fulfil it."
        activity = Activity(target.resource_id, description, cause, self._wall(now_ns), "InProgress", message)
        self.activities.append(activity)
        self._under_way = _UnderWay(activity, target, policy, self._instances.current)
        self._resize(count, now_ns)


def _alarm_name(target: Target, *, above: bool) -> str:
    return f"TargetTracking-{target.resource_id}-Alarm{'High' if above else 'Low'}-{new_id()}"
