"""Requests to Application Auto Scaling: what they name and ask for, or a ValidationException."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from inference_benchmarker.embedded.aws.aws_json import AwsError
from inference_benchmarker.embedded.aws.paging import page
from inference_benchmarker.embedded.scaling.target_tracking import COOLDOWN_S, PERIOD_S, TargetTracking, Tracking

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SERVICE_NAMESPACE = "sagemaker"
SCALABLE_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
INVOCATIONS = "SageMakerVariantInvocationsPerInstance"
_RESOURCE = re.compile("endpoint/([^/]+)/variant/([^/]+)")
_SUSPENSIONS = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")
_STATISTICS = ("Average", "Minimum", "Maximum", "SampleCount", "Sum")


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
    kind = request.get("PolicyType")
    if kind != "TargetTrackingScaling":
        raise invalid(f"PolicyType is {kind!r}: this endpoint knows TargetTrackingScaling only")
    given: dict[str, Any] | None = request.get("TargetTrackingScalingPolicyConfiguration")
    if not given:
        raise invalid("A target tracking policy needs its TargetTrackingScalingPolicyConfiguration")
    target = float(given["TargetValue"])
    if not 2**-360 <= target <= 2**360:
        raise invalid(f"TargetValue is {target:g}: it must be from 2^-360 to 2^360")
    _check_metric(given)
    out_ns, in_ns = (
        _cooldown_s(given, name) * period_ns // PERIOD_S for name in ("ScaleOutCooldown", "ScaleInCooldown")
    )
    return given, TargetTracking(Tracking(target, out_ns, in_ns, scale_in=not given.get("DisableScaleIn", False)))


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
        _one_of(predefined["PredefinedMetricType"], "predefinedMetricType", INVOCATIONS)
        if "ResourceLabel" in predefined:
            raise invalid(f"{INVOCATIONS} has no ResourceLabel")
        return
    assert customized is not None
    if missing := [name for name in ("MetricName", "Namespace", "Statistic") if name not in customized]:
        raise invalid(f"The customized metric has no {' and no '.join(missing)}; metric math is not spoken here")
    _one_of(customized["Statistic"], "statistic", *_STATISTICS)
