"""Requests to Application Auto Scaling: what they name and ask for, or a ValidationException."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from inference_benchmarker.embedded.aws.aws_json import AwsError
from inference_benchmarker.embedded.aws.paging import page
from inference_benchmarker.embedded.aws.scaling_metrics import CONCURRENCY
from inference_benchmarker.embedded.scaling.step_scaling import ADJUSTMENTS, Step, Stepping, StepScaling
from inference_benchmarker.embedded.scaling.target_tracking import (
    COOLDOWN_S,
    HIGH_RESOLUTION_IN_DATAPOINTS,
    IN_DATAPOINTS,
    PERIOD_S,
    TargetTracking,
    Tracking,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SERVICE_NAMESPACE = "sagemaker"
SCALABLE_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
TRACKING, STEPS = "TargetTrackingScaling", "StepScaling"
INVOCATIONS = "SageMakerVariantInvocationsPerInstance"
_RESOURCE = re.compile("endpoint/([^/]+)/variant/([^/]+)")
_SUSPENSIONS = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")
STATISTICS = ("Average", "Minimum", "Maximum", "SampleCount", "Sum")


def invalid(message: str) -> AwsError:
    """The answer to a request that is not taken."""
    return AwsError("ValidationException", message)


class Resource(NamedTuple):
    """The variant of an endpoint that a request names."""

    id: str
    endpoint_name: str
    variant: str

    def __str__(self) -> str:
        return f"service namespace {SERVICE_NAMESPACE}, resource ID {self.id}, scalable dimension {SCALABLE_DIMENSION}"

    @classmethod
    def parse(cls, request: dict[str, Any]) -> Self:
        """The resource of a request that has to name one. Raises AwsError."""
        _one_of(request["ServiceNamespace"], "serviceNamespace", SERVICE_NAMESPACE)
        _one_of(request["ScalableDimension"], "scalableDimension", SCALABLE_DIMENSION)
        found = _RESOURCE.fullmatch(request["ResourceId"])
        if not found:
            raise invalid(f"ResourceId is {request['ResourceId']!r}: it must be endpoint/NAME/variant/VARIANT")
        return cls(found[0], found[1], found[2])


def _one_of(value: str, member: str, *known: str) -> None:
    if value not in known:
        allowed = ", ".join(known)
        raise invalid(f"Value '{value}' at '{member}' is not valid here: it must be one of [{allowed}]")


class _OfResource(Protocol):
    @property
    def resource_id(self) -> str: ...


_Found = TypeVar("_Found", bound=_OfResource)


def filtered(every: Iterable[_Found], request: dict[str, Any]) -> list[_Found]:
    """Those of the resources that a request asks for, which need not name one."""
    ids = request.get("ResourceIds") or ([request["ResourceId"]] if "ResourceId" in request else None)
    dimension = request.get("ScalableDimension")
    if dimension and not ids:
        raise invalid("A scalable dimension needs a resource ID beside it")
    if request["ServiceNamespace"] != SERVICE_NAMESPACE or dimension not in (None, SCALABLE_DIMENSION):
        return []
    return [each for each in every if not ids or each.resource_id in ids]


def page_of(name: str, found: Sequence[dict[str, Any]], request: dict[str, Any], most: int) -> dict[str, Any]:
    """The page that a request asks for. Raises AwsError."""
    size = request.get("MaxResults", most)
    if not 1 <= size <= most:
        raise invalid(f"MaxResults is {size}: it must be from 1 to {most}")
    bad_token = AwsError("InvalidNextTokenException", "The next token is of no earlier answer")
    return page(name, found, request.get("NextToken"), size, bad_token)


def capacities(request: dict[str, Any], known: tuple[int, int] | None) -> tuple[int, int]:
    """The bounds that a request sets; what it leaves out stays as it is known, and a new target needs both."""
    bounds = dict(zip(("MinCapacity", "MaxCapacity"), known or (), strict=False)) | request
    if not {"MinCapacity", "MaxCapacity"} <= bounds.keys():
        raise invalid("A new scalable target needs both MinCapacity and MaxCapacity")
    minimum, maximum = bounds["MinCapacity"], bounds["MaxCapacity"]
    if minimum < 0 or maximum < 0:
        raise invalid(f"The capacities are {minimum} and {maximum}: neither may be less than 0")
    if maximum < minimum:
        raise invalid(f"MaxCapacity is {maximum}: it must not be less than MinCapacity, {minimum}")
    return minimum, maximum


def suspensions(request: dict[str, Any]) -> dict[str, bool]:
    """Whatever a request suspends (true) or resumes."""
    given: dict[str, bool] = request.get("SuspendedState") or {}
    return {name: given[name] for name in _SUSPENSIONS if name in given}


def tracking_of(request: dict[str, Any], period_ns: int) -> tuple[dict[str, Any], TargetTracking]:
    """The configuration of a policy, and what it makes; ``period_ns``: as long as a minute lasts. Raises AwsError."""
    given: dict[str, Any] | None = request.get(f"{TRACKING}PolicyConfiguration")
    if not given:
        raise invalid(f"A target tracking policy needs its {TRACKING}PolicyConfiguration")
    target = float(given["TargetValue"])
    if not 2**-360 <= target <= 2**360:
        raise invalid(f"TargetValue is {target:g}: it must be from 2^-360 to 2^360")
    _check_metric(given)
    out_ns, in_ns = (
        _cooldown_s(given, name) * period_ns // PERIOD_S for name in ("ScaleOutCooldown", "ScaleInCooldown")
    )
    finer = given.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType") == CONCURRENCY
    scale_in = not given.get("DisableScaleIn", False)
    datapoints = HIGH_RESOLUTION_IN_DATAPOINTS if finer else IN_DATAPOINTS
    return given, TargetTracking(Tracking(target, out_ns, in_ns, scale_in, datapoints))


def kind_of(request: dict[str, Any]) -> str:
    """The kind of policy that a request puts. Raises AwsError."""
    kind: str | None = request.get("PolicyType")
    if kind not in (TRACKING, STEPS):
        raise invalid(f"PolicyType is {kind!r}: this endpoint knows {TRACKING} and {STEPS}")
    return kind


def steps_of(request: dict[str, Any], period_ns: int) -> tuple[dict[str, Any], StepScaling]:
    """The configuration of a policy by steps, and what it makes; see ``tracking_of``. Raises AwsError."""
    given: dict[str, Any] | None = request.get(f"{STEPS}PolicyConfiguration")
    if not given or not given.get("StepAdjustments"):
        raise invalid(f"A step scaling policy needs its {STEPS}PolicyConfiguration with StepAdjustments")
    kind, magnitude = given.get("AdjustmentType", ""), given.get("MinAdjustmentMagnitude", 1)
    _one_of(kind, "adjustmentType", *ADJUSTMENTS)
    if magnitude < 1:
        raise invalid(f"MinAdjustmentMagnitude is {magnitude}: it must be at least 1")
    steps = sorted(
        Step(
            float(each.get("MetricIntervalLowerBound", "-inf")),
            float(each.get("MetricIntervalUpperBound", "inf")),
            each["ScalingAdjustment"],
        )
        for each in given["StepAdjustments"]
    )
    if any(step.lower >= step.upper for step in steps):
        raise invalid("The lower bound of a step must be less than its upper one")
    if any(step.upper != following.lower for step, following in pairwise(steps)):
        raise invalid("There must be no gap between steps, and they must not overlap")
    cooldown_ns = _cooldown_s(given, "Cooldown") * period_ns // PERIOD_S
    return given, StepScaling(Stepping(kind, tuple(steps), magnitude, cooldown_ns))


def _cooldown_s(given: dict[str, Any], name: str) -> int:
    seconds: int = given.get(name, COOLDOWN_S)
    if seconds < 0:
        raise invalid(f"{name} is {seconds}: it must not be less than 0")
    return seconds


def _check_metric(given: dict[str, Any]) -> None:
    predefined, customized = given.get("PredefinedMetricSpecification"), given.get("CustomizedMetricSpecification")
    if (predefined is None) == (customized is None):
        raise invalid("Give either PredefinedMetricSpecification or CustomizedMetricSpecification")
    if predefined is not None:
        _one_of(predefined["PredefinedMetricType"], "predefinedMetricType", INVOCATIONS, CONCURRENCY)
        if "ResourceLabel" in predefined:
            raise invalid(f"{predefined['PredefinedMetricType']} has no ResourceLabel")
        return
    assert customized is not None
    if missing := [name for name in ("MetricName", "Namespace", "Statistic") if name not in customized]:
        raise invalid(f"The customized metric has no {' and no '.join(missing)}; metric math is not spoken here")
    _one_of(customized["Statistic"], "statistic", *STATISTICS)
