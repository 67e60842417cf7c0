"""Models and endpoint configurations: what endpoints are made of. Neither costs anything nor does anything alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.control_plane.registry import Registry, Resource, invalid
from inference_benchmarker.embedded.config import PUBLISH_INTERVALS_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from inference_benchmarker.embedded.aws.aws_json import Caller, Operation
    from inference_benchmarker.embedded.aws.control_plane.tags import Tags

_STRATEGIES = ("LEAST_OUTSTANDING_REQUESTS", "RANDOM")


class Models:
    """The operations on models. ``now``: epoch seconds."""

    def __init__(self, tags: Tags, now: Callable[[], float]) -> None:
        self.registry: Registry[Resource] = Registry("model", "Model", "model")
        self._tags = tags
        self._now = now
        tags.cover(self.registry)
        self.operations: Mapping[str, Operation] = {
            "CreateModel": self._create,
            "DescribeModel": self._describe,
            "ListModels": self._list,
            "DeleteModel": self._delete,
        }

    def _create(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        if ("PrimaryContainer" in request) == ("Containers" in request):
            raise invalid("Give either PrimaryContainer or Containers.")
        made = Resource(name=request["ModelName"], created_at=self._now(), content=_untagged(request))
        arn = self.registry.add(made, caller)
        self._tags.put(arn, request)
        return {"ModelArn": arn}

    def _describe(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        made = self.registry.find(request["ModelName"], caller)
        return {**made.content, "ModelArn": self.registry.arn(made.name, caller), "CreationTime": made.created_at}

    def _list(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        return self.registry.page(self.registry, request, caller, changes=False)

    def _delete(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        made = self.registry.remove(request["ModelName"], caller)
        self._tags.drop(self.registry.arn(made.name, caller))
        return {}


class EndpointConfigs:
    """The operations on endpoint configurations but for describing one, which the endpoint's own have, too."""

    def __init__(self, models: Registry[Resource], tags: Tags, now: Callable[[], float]) -> None:
        self.registry: Registry[Resource] = Registry("endpoint configuration", "EndpointConfig", "endpoint-config")
        self._models = models
        self._tags = tags
        self._now = now
        tags.cover(self.registry)
        self.operations: Mapping[str, Operation] = {
            "CreateEndpointConfig": self._create,
            "ListEndpointConfigs": self._list,
            "DeleteEndpointConfig": self._delete,
        }

    def _create(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        self._check(request, caller)
        made = Resource(name=request["EndpointConfigName"], created_at=self._now(), content=_untagged(request))
        arn = self.registry.add(made, caller)
        self._tags.put(arn, request)
        return {"EndpointConfigArn": arn}

    def _check(self, request: dict[str, Any], caller: Caller) -> None:
        variants = request["ProductionVariants"]
        if len(variants) != 1:
            raise invalid(f"There are {len(variants)} production variants: this endpoint knows one of them only.")
        (variant,) = variants
        if "ModelName" in variant:
            self._models.find(variant["ModelName"], caller)
        elif "ExecutionRoleArn" not in request:
            raise invalid("A production variant without a model, for inference components, needs an ExecutionRoleArn.")
        if ("InstanceType" in variant) == ("ServerlessConfig" in variant):
            raise invalid("A production variant needs either an InstanceType or a ServerlessConfig.")
        if "ServerlessConfig" in variant and "ModelName" not in variant:
            raise invalid("A serverless production variant needs a model.")
        if "InstanceType" in variant and variant.get("InitialInstanceCount", 1) < 1:
            raise invalid(f"InitialInstanceCount is {variant['InitialInstanceCount']}: it must be at least 1.")
        interval = (request.get("MetricsConfig") or {}).get("MetricPublishFrequencyInSeconds")
        if interval not in (None, *PUBLISH_INTERVALS_S):
            raise invalid(f"MetricPublishFrequencyInSeconds is {interval}: it must be one of {PUBLISH_INTERVALS_S}.")
        strategy = variant.get("RoutingConfig", {}).get("RoutingStrategy", "RANDOM")
        if strategy not in _STRATEGIES:
            raise invalid(f"RoutingStrategy is {strategy}: it must be one of [{', '.join(_STRATEGIES)}].")

    def described(self, name: str, caller: Caller) -> dict[str, Any]:
        """The description of one. Raises AwsError."""
        made = self.registry.find(name, caller)
        arn = self.registry.arn(made.name, caller)
        return {**made.content, "EndpointConfigArn": arn, "CreationTime": made.created_at}

    def _list(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        return self.registry.page(self.registry, request, caller, changes=False)

    def _delete(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        made = self.registry.remove(request["EndpointConfigName"], caller)
        self._tags.drop(self.registry.arn(made.name, caller))
        return {}


def _untagged(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != "Tags"}
