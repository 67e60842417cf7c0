"""Application Auto Scaling's API over the autoscaler: scalable targets, scaling policies and activities.

Where it differs from AWS: it scales the instances of this endpoint's variant only, by target tracking (on the
invocations per instance, the concurrent requests, or one metric that CloudWatch has here) and by steps, whose alarms go
with their policy. Nothing is scheduled.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import ACCOUNT, AwsError, Caller, Service
from inference_benchmarker.embedded.aws.scaling_requests import (
    SCALABLE_DIMENSION,
    SERVICE_NAMESPACE,
    STEPS,
    TRACKING,
    Resource,
    capacities,
    filtered,
    invalid,
    kind_of,
    page_of,
    steps_of,
    suspensions,
    tracking_of,
)
from inference_benchmarker.embedded.scaling.step_scaling import StepScaling

if TYPE_CHECKING:
    from inference_benchmarker.embedded.aws.fleets import Fleets
    from inference_benchmarker.embedded.aws.scaling import EndpointScaling
    from inference_benchmarker.embedded.scaling.records import Activity, MetricSource, Policy, Target

TARGET_PREFIX = "AnyScaleFrontendService"
_MOST, _MOST_POLICIES = 50, 10
_ROLE = (
    f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
)


class ApplicationAutoScaling:
    """The operations, on the variants that the fleets are."""

    def __init__(self, fleets: Fleets) -> None:
        self._fleets = fleets
        operations = {
            "RegisterScalableTarget": self._register,
            "DescribeScalableTargets": self._describe_targets,
            "DeregisterScalableTarget": self._deregister,
            "PutScalingPolicy": self._put_policy,
            "DescribeScalingPolicies": self._describe_policies,
            "DeleteScalingPolicy": self._delete_policy,
            "DescribeScalingActivities": self._describe_activities,
            "DescribeScheduledActions": self._describe_schedules,
        }
        self.service = Service("application-autoscaling", operations)

    def _register(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        resource = Resource.parse(request)
        scaler = self._fleets.scaler(resource)
        if scaler is None:
            raise invalid(f"No such endpoint variant exists: {resource.id}")
        known = scaler.autoscaler.targets.get(resource.id)
        bounds = (known.scaling.minimum, known.scaling.maximum) if known else None
        minimum, maximum = capacities(request, bounds)
        suspended = suspensions(request)
        now = time.monotonic_ns()
        target = scaler.autoscaler.register(resource.endpoint_name, resource.id, minimum, maximum, now)
        scaling = target.scaling
        scaling.in_suspended = suspended.get("DynamicScalingInSuspended", scaling.in_suspended)
        scaling.out_suspended = suspended.get("DynamicScalingOutSuspended", scaling.out_suspended)
        target.schedule_suspended = suspended.get("ScheduledScalingSuspended", target.schedule_suspended)
        return {"ScalableTargetARN": _target_arn(target, caller)}

    def _describe_targets(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        found = filtered(self._targets(), request)
        return page_of("ScalableTargets", [_described_target(target, caller) for target in found], request, _MOST)

    def _deregister(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        scaler, target = self._target(request)
        del scaler.autoscaler.targets[target.resource_id]
        return {}

    def _put_policy(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        (scaler, target), name = self._target(request), request["PolicyName"]
        if kind_of(request) == STEPS:
            configuration, steps = steps_of(request, scaler.autoscaler.period_ns)
            policy = scaler.autoscaler.put_steps(target, name, configuration, steps, time.monotonic_ns())
            return {"PolicyARN": policy_arn(target, policy, caller), "Alarms": _alarms(policy, caller)}
        configuration, tracking = tracking_of(request, scaler.autoscaler.period_ns)
        source = scaler.metrics.source(target.endpoint_name, configuration)
        for other in target.policies.values():
            tracked = [] if isinstance(other.rule, StepScaling) else other.alarms
            if other.name != name and any(_metric_of(record.source) == _metric_of(source) for record in tracked):
                raise invalid(f"A metric has one target tracking policy, and {source.name} has {other.name}")
        policy = scaler.autoscaler.put_policy(
            target,
            name,
            configuration=configuration,
            tracking=tracking,
            source=source,
            now_ns=time.monotonic_ns(),
        )
        return {"PolicyARN": policy_arn(target, policy, caller), "Alarms": _alarms(policy, caller)}

    def _describe_policies(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        names = request.get("PolicyNames")
        found = [
            _described_policy(target, policy, caller)
            for target in filtered(self._targets(), request)
            for policy in target.policies.values()
            if not names or policy.name in names
        ]
        return page_of("ScalingPolicies", found, request, _MOST_POLICIES)

    def _delete_policy(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        resource, name = Resource.parse(request), request["PolicyName"]
        target = next((each for each in self._targets() if each.resource_id == resource.id), None)
        if target is None or name not in target.policies:
            raise AwsError("ObjectNotFoundException", f"No scaling policy is named {name} for {resource}")
        del target.policies[name]
        return {}

    def _describe_activities(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        every = request.get("IncludeNotScaledActivities", False)
        every_one = [each for scaler in self._fleets.scalers() for each in scaler.autoscaler.activities]
        every_one.sort(key=lambda activity: activity.started_at)
        found = filtered(reversed(every_one), request)
        activities = [_described_activity(activity) for activity in found if every or activity.reason is None]
        return page_of("ScalingActivities", activities, request, _MOST)

    def _describe_schedules(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        return page_of("ScheduledActions", [], request, _MOST)

    def _targets(self) -> list[Target]:
        return [target for scaler in self._fleets.scalers() for target in scaler.autoscaler.targets.values()]

    def _target(self, request: dict[str, Any]) -> tuple[EndpointScaling, Target]:
        """The target that a request names, and what scales it. Raises AwsError."""
        resource = Resource.parse(request)
        scaler = self._fleets.scaler(resource)
        target = scaler.autoscaler.targets.get(resource.id) if scaler else None
        if scaler is None or target is None:
            raise AwsError("ObjectNotFoundException", f"No scalable target is registered for {resource}")
        return scaler, target


def policy_arn(target: Target, policy: Policy, caller: Caller) -> str:
    """The ARN of a policy, which is also the action of its alarms."""
    resource = f"resource/sagemaker/{target.resource_id}:policyName/{policy.name}"
    return f"arn:aws:autoscaling:{caller.region}:{ACCOUNT}:scalingPolicy:{policy.id}:{resource}"


def alarm_arn(name: str, caller: Caller) -> str:
    """The ARN of an alarm."""
    return f"arn:aws:cloudwatch:{caller.region}:{ACCOUNT}:alarm:{name}"


def _target_arn(target: Target, caller: Caller) -> str:
    return f"arn:aws:application-autoscaling:{caller.region}:{ACCOUNT}:scalable-target/{target.id}"


def _metric_of(source: MetricSource) -> tuple[object, ...]:
    return source.namespace, source.name, frozenset(source.dimensions), source.statistic


def _alarms(policy: Policy, caller: Caller) -> list[dict[str, str]]:
    return [{"AlarmName": record.name, "AlarmARN": alarm_arn(record.name, caller)} for record in policy.alarms]


def _identity(resource_id: str) -> dict[str, Any]:
    return {
        "ServiceNamespace": SERVICE_NAMESPACE,
        "ResourceId": resource_id,
        "ScalableDimension": SCALABLE_DIMENSION,
    }


def _described_target(target: Target, caller: Caller) -> dict[str, Any]:
    scaling = target.scaling
    return {
        **_identity(target.resource_id),
        "MinCapacity": scaling.minimum,
        "MaxCapacity": scaling.maximum,
        "RoleARN": _ROLE,
        "CreationTime": target.created_at,
        "SuspendedState": {
            "DynamicScalingInSuspended": scaling.in_suspended,
            "DynamicScalingOutSuspended": scaling.out_suspended,
            "ScheduledScalingSuspended": target.schedule_suspended,
        },
        "ScalableTargetARN": _target_arn(target, caller),
    }


def _described_policy(target: Target, policy: Policy, caller: Caller) -> dict[str, Any]:
    kind = STEPS if isinstance(policy.rule, StepScaling) else TRACKING
    return {
        **_identity(target.resource_id),
        "PolicyARN": policy_arn(target, policy, caller),
        "PolicyName": policy.name,
        "PolicyType": kind,
        f"{kind}PolicyConfiguration": policy.configuration,
        "Alarms": _alarms(policy, caller),
        "CreationTime": policy.created_at,
    }


def _described_activity(activity: Activity) -> dict[str, Any]:
    fields: dict[str, Any] = {
        **_identity(activity.resource_id),
        "ActivityId": activity.id,
        "Description": activity.description,
        "Cause": activity.cause,
        "StartTime": activity.started_at,
        "StatusCode": activity.status,
        "StatusMessage": activity.message,
    }
    if activity.ended_at is not None:
        fields["EndTime"] = activity.ended_at
    if activity.reason is not None:
        fields["NotScaledReasons"] = [activity.reason]
    return fields
