"""Scaling policies of a planned endpoint as the objects that AWS's commands take. Pure.

Of Application Auto Scaling (RegisterScalableTarget, PutScalingPolicy) and of CloudWatch (PutMetricAlarm), each as
``aws ... --cli-input-json file://...`` reads it. Cooldowns are the defaults of a SageMaker variant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from server_capacity.models.fleet.policies import REMOVED, STEPS, step_low
from server_capacity.models.fleet.result_section import CONCURRENCY_FILE, CPU_FILE, INVOCATIONS_FILE, STEP_FILE
from server_capacity.planning.sizing import floored
from server_capacity.planning.targets import targets_of
from server_capacity.results.types.bounds import Endpoint

if TYPE_CHECKING:
    from server_capacity.planning.measured import Measured
    from server_capacity.planning.targets import CpuTarget
    from server_capacity.results.types.plan import Choice, EndpointPlan

COOLDOWN_S = 300
OUT_DATAPOINTS, IN_DATAPOINTS = 3, 15
NAME, VARIANT, COMPONENT = "ENDPOINT-NAME", "AllTraffic", "INFERENCE-COMPONENT-NAME"
"""Placeholders; ``AllTraffic`` is what the variant of most endpoints is called."""

POLICY_ARN = "POLICY-ARN-THAT-put-scaling-policy-PRINTS"
_ENDPOINT_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_ABOVE = {"ComparisonOperator": "GreaterThanThreshold", "TreatMissingData": "notBreaching"}
_BELOW = {"ComparisonOperator": "LessThanThreshold", "TreatMissingData": "breaching"}


@dataclass(frozen=True, slots=True)
class Resource:
    """The scaled thing in AWS's words: a variant of an endpoint, or an inference component. ``of``: its dimensions."""

    id: str
    dimension: str
    metric_prefix: str
    per: str
    of: tuple[tuple[str, str], ...]
    placeholders: tuple[str, ...]

    @property
    def key(self) -> dict[str, str]:
        """The members that every call has."""
        return {"ServiceNamespace": "sagemaker", "ResourceId": self.id, "ScalableDimension": self.dimension}

    @property
    def dimensions(self) -> list[dict[str, str]]:
        """Its metrics' dimensions."""
        return [{"Name": name, "Value": value} for name, value in self.of]


def resource_of(endpoint: Endpoint, given: str = "") -> Resource:
    """The resource by the ``endpoint`` of a plan, or as it is called where a name was ``given``.

    What is not known is a placeholder: so is the name of an endpoint that was made for the search, and is gone.
    """
    found = name_of(endpoint, given)
    if endpoint.kind == "inference-component":
        name = given or COMPONENT
        return Resource(
            f"inference-component/{name}",
            "sagemaker:inference-component:DesiredCopyCount",
            "SageMakerInferenceComponent",
            "Copy",
            (("InferenceComponentName", name),),
            (COMPONENT,) if name == COMPONENT else (),
        )
    name, variant = found or NAME, endpoint.variant or VARIANT
    return Resource(
        f"endpoint/{name}/variant/{variant}",
        "sagemaker:variant:DesiredInstanceCount",
        "SageMakerVariant",
        "Instance",
        (("EndpointName", name), ("VariantName", variant)),
        (*((NAME,) if name == NAME else ()), *(() if endpoint.variant else (VARIANT,))),
    )


def name_of(endpoint: Endpoint, given: str = "") -> str:
    """The deployed endpoint's name; empty where it is not known."""
    measured = None if endpoint.arguments is not None else endpoint.name
    return given or (measured if measured and _ENDPOINT_NAME.fullmatch(measured) else "")


def policy_files(plan: EndpointPlan, search: Measured, given: str = "") -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The objects by the name of their file, and a sentence for whatever is missing. ``given``: see ``resource_of``."""
    resource, chosen, targets = resource_of(plan.endpoint or Endpoint(), given), plan.chosen, targets_of(plan, search)
    files = {
        "scalable_target.json": {
            **resource.key,
            "MinCapacity": chosen.minimum,
            "MaxCapacity": chosen.maximum,
        },
        INVOCATIONS_FILE: _tracking(
            resource, "invocations", chosen.invocations_per_instance, _predefined(resource, "Invocations")
        ),
        **_step_files(resource, chosen),
    }
    missing = [
        f"In alarm_out.json and alarm_in.json, replace {POLICY_ARN} with the ARN that put-scaling-policy prints for "
        f"{STEP_FILE}."
    ]
    if resource.placeholders:
        text = " and ".join(resource.placeholders)
        named = f", or give --endpoint-name NAME{' for the first' if text != NAME else ''}" if NAME in text else ""
        missing.append(f"Replace {text} in the files{named}.")
    for file, made in (
        (CONCURRENCY_FILE, _concurrency(resource, targets.concurrency)),
        (CPU_FILE, _cpu(resource, targets.cpu)),
    ):
        if isinstance(made, str):
            missing.append(f"{file} was not written: {made}.")
        else:
            files[file] = made
    return files, missing


def _tracking(resource: Resource, name: str, target: float, metric: dict[str, Any]) -> dict[str, Any]:
    return {
        "PolicyName": f"planned-{name}",
        **resource.key,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": target,
            **metric,
            "ScaleOutCooldown": COOLDOWN_S,
            "ScaleInCooldown": COOLDOWN_S,
        },
    }


def _predefined(resource: Resource, metric: str) -> dict[str, Any]:
    kind = f"{resource.metric_prefix}{metric}Per{resource.per}"
    return {"PredefinedMetricSpecification": {"PredefinedMetricType": kind}}


def _concurrency(resource: Resource, target: float | str) -> dict[str, Any] | str:
    """Requests in flight on an instance: the planned rate times the mean latency there (Little)."""
    if isinstance(target, str):
        return target
    per = "Model" if resource.per == "Instance" else "Copy"
    kind = f"{resource.metric_prefix}ConcurrentRequestsPer{per}HighResolution"
    metric = {"PredefinedMetricSpecification": {"PredefinedMetricType": kind}}
    return _tracking(resource, "concurrency", target, metric)


def _cpu(resource: Resource, target: CpuTarget | str) -> dict[str, Any] | str:
    """CPUUtilization at the planned rate, in CloudWatch's scale: 100 for each core."""
    if isinstance(target, str):
        return target
    metric = {
        "CustomizedMetricSpecification": {
            "Namespace": "/aws/sagemaker/Endpoints",
            "MetricName": "CPUUtilization",
            "Dimensions": resource.dimensions,
            "Statistic": "Average",
            "Unit": "Percent",
        }
    }
    return _tracking(resource, "cpu", target.value, metric)


def _step_files(resource: Resource, chosen: Choice) -> dict[str, dict[str, Any]]:
    """One policy for both directions, and the alarms that set it off: intervals are counted from an alarm's threshold.

    The lower alarm leaves a gap: with what it takes away, the rest stays below the upper one's threshold.
    """
    high = chosen.invocations_per_instance
    low = floored(step_low(high, chosen.minimum))
    steps: list[dict[str, float]] = [{"MetricIntervalUpperBound": 0.0, "ScalingAdjustment": -int(REMOVED)}]
    starts = [float(f"{above * high:.9g}") for above, _ in STEPS]
    ends = starts[1:]
    for number, (start, (_, percent)) in enumerate(zip(starts, STEPS, strict=True)):
        step: dict[str, float] = {"MetricIntervalLowerBound": start, "ScalingAdjustment": int(percent)}
        if number < len(ends):
            step["MetricIntervalUpperBound"] = ends[number]
        steps.append(step)
    policy = {
        "PolicyName": "planned-step",
        **resource.key,
        "PolicyType": "StepScaling",
        "StepScalingPolicyConfiguration": {
            "AdjustmentType": "PercentChangeInCapacity",
            "StepAdjustments": steps,
            "MinAdjustmentMagnitude": 1,
            "Cooldown": COOLDOWN_S,
            "MetricAggregationType": "Average",
        },
    }
    return {
        STEP_FILE: policy,
        "alarm_out.json": _alarm(resource, "out", high, **_ABOVE),
        "alarm_in.json": _alarm(resource, "in", low, **_BELOW),
    }


def _alarm(resource: Resource, way: str, threshold: float, **rule: Any) -> dict[str, Any]:
    periods = OUT_DATAPOINTS if way == "out" else IN_DATAPOINTS
    return {
        "AlarmName": f"planned-{resource.id.replace('/', '-')}-{way}",
        "AlarmDescription": f"Scales {resource.id} {way}: requests per minute to each {resource.per.lower()}.",
        "ActionsEnabled": True,
        "AlarmActions": [POLICY_ARN],
        "Namespace": "AWS/SageMaker",
        "MetricName": f"InvocationsPer{resource.per}",
        "Dimensions": resource.dimensions,
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": periods,
        "DatapointsToAlarm": periods,
        "Threshold": threshold,
        **rule,
    }
