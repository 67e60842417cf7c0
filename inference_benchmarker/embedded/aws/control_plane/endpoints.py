"""SageMaker's endpoints: created, described, listed, resized by hand and deleted, each with its fleet.

The endpoint's own, and every name that it was invoked by, are in service from the start; their configurations are
named after them, and they cannot be deleted.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import AwsError
from inference_benchmarker.embedded.aws.control_plane.hosted import (
    CREATING,
    DELETING,
    DELETING_SHARE,
    FAILED,
    IN_SERVICE,
    NO_CAPACITY,
    Hosted,
)
from inference_benchmarker.embedded.aws.control_plane.hosting import on_instances, serverless
from inference_benchmarker.embedded.aws.control_plane.registry import Registry, Resource, invalid
from inference_benchmarker.embedded.aws.gauges import instance_type
from inference_benchmarker.embedded.aws.telemetry import VARIANT, Place
from inference_benchmarker.embedded.instance_types import quota

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.embedded.aws.aws_json import Caller, Operation
    from inference_benchmarker.embedded.aws.control_plane.definitions import EndpointConfigs
    from inference_benchmarker.embedded.aws.control_plane.hosted import World
    from inference_benchmarker.embedded.aws.control_plane.tags import Tags

# Beyond SageMaker's own quotas; a slip of the hand should not cost this machine its memory.
MOST_INSTANCES = 10_000
_CONFIG_SUFFIX = "-config"


class Endpoints:
    """The operations."""

    def __init__(self, world: World, models: Registry[Resource], configs: EndpointConfigs, tags: Tags) -> None:
        self.registry: Registry[Hosted] = Registry("endpoint", "Endpoint", "endpoint")
        self._world = world
        self._models = models
        self._configs = configs
        self._tags = tags
        self._own: dict[str, Hosted] = {}
        tags.cover(self.registry)
        self.operations: Mapping[str, Operation] = {
            "CreateEndpoint": self._create,
            "DescribeEndpoint": self._describe,
            "DescribeEndpointConfig": self._describe_config,
            "ListEndpoints": self._list,
            "UpdateEndpointWeightsAndCapacities": self._update_capacities,
            "DeleteEndpoint": self._delete,
        }

    def _create(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        name, world = request["EndpointName"], self._world
        if name == world.config.endpoint_name:
            raise self.registry.known(name, caller)
        config = self._configs.registry.find(request["EndpointConfigName"], caller)
        (variant,) = config.content["ProductionVariants"]
        model = self._models.find(variant["ModelName"], caller).content if "ModelName" in variant else None
        asked = variant.get("InitialInstanceCount", 1) if "InstanceType" in variant else 0
        if asked:
            self._check_quota(variant["InstanceType"], asked)
        metrics = config.content.get("MetricsConfig") or {}
        made = Hosted(
            name=name,
            created_at=world.now(),
            status=CREATING,
            config_name=config.name,
            variant=variant,
            model=model,
            interval_s=metrics.get("MetricPublishFrequencyInSeconds", world.config.publish_interval_s),
        )
        arn = self.registry.add(made, caller)
        self._tags.put(arn, request)
        world.fleets.reserve(name)
        world.later(world.config.create_s, partial(self._begin, made))
        return {"EndpointArn": arn}

    def _check_quota(self, kind: str, more: int) -> None:
        """Raises AwsError where so many more instances of a type are beyond its quota."""
        most, used = quota(self._world.config, kind), self.used(kind)
        if used + more > most:
            raise AwsError(
                "ResourceLimitExceeded",
                f"The account-level service limit '{kind} for endpoint usage' is {most} Instances, with current"
                f" utilization of {used} Instances and a request delta of {more} Instances. Please use AWS Service"
                " Quotas to request an increase for this quota.",
            )

    def used(self, kind: str) -> int:
        """The instances of a type that endpoints made here have, or asked for."""
        return sum(
            max(made.instances)
            for made in self.registry
            if made.variant.get("InstanceType") == kind and made.status != FAILED
        )

    def _begin(self, made: Hosted) -> None:
        """Its instances are there, or could not be had."""
        world, is_serverless = self._world, "ServerlessConfig" in made.variant
        config = (
            serverless(world.config, made)
            if is_serverless
            else on_instances(world.config, made, made.name, made.instances[1])
        )
        if config is None:
            made.reason = NO_CAPACITY
            made.turn(FAILED, world.now())
            return
        world.fleets.open(made.name)
        if made.model is not None:
            made.fleet = world.make(config, Place(made.variant["VariantName"]), is_serverless)
            world.fleets.add(made.name, made.fleet)
        made.turn(IN_SERVICE, world.now())

    def _delete(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        name, world = request["EndpointName"], self._world
        made = self.registry.get(name)
        if made is None:
            if self._find_own(name) is not None:
                arn = self.registry.arn(name, caller)
                raise invalid(f'Cannot delete endpoint "{arn}": nobody created it, it is the embedded endpoint.')
            raise self.registry.missing(name, caller)
        self._refuse_in_progress(made, caller)
        if made.status == IN_SERVICE and world.fleets.components(name):
            raise invalid(f'Cannot delete endpoint "{self.registry.arn(name, caller)}": it has inference components.')
        made.fleet = None
        made.turn(DELETING, world.now())
        world.fleets.remove(name, None, time.monotonic_ns())
        world.fleets.reserve(name)
        world.later(world.config.create_s * DELETING_SHARE, partial(self._end, made, caller))
        return {}

    def _end(self, made: Hosted, caller: Caller) -> None:
        self.registry.remove(made.name, caller)
        self._tags.drop(self.registry.arn(made.name, caller))

    def _refuse_in_progress(self, made: Hosted, caller: Caller) -> None:
        """Raises AwsError while the endpoint turns into something else, as SageMaker does."""
        if made.shown_status not in (IN_SERVICE, FAILED):
            raise invalid(f'Cannot update in-progress endpoint "{self.registry.arn(made.name, caller)}".')

    def _list(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        own = [found for name in self._world.fleets.own.telemetry.names if (found := self._find_own(name))]
        return self.registry.page([*own, *self.registry], request, caller, changes=True)

    def _describe(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        made = self._find(request["EndpointName"], caller)
        fields = {
            "EndpointName": made.name,
            "EndpointArn": self.registry.arn(made.name, caller),
            "EndpointConfigName": made.config_name,
            "EndpointStatus": made.shown_status,
            "CreationTime": made.created_at,
            "LastModifiedTime": made.shown_change,
            "MetricsConfig": _metrics_config(made.interval_s),
        }
        if made.reason is not None:
            fields["FailureReason"] = made.reason
        return fields if made.status in (CREATING, FAILED) else {**fields, "ProductionVariants": [_variant(made)]}

    def _update_capacities(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        made = self._find(request["EndpointName"], caller)
        arn = self.registry.arn(made.name, caller)
        self._refuse_in_progress(made, caller)
        (wanted,) = request["DesiredWeightsAndCapacities"]
        if wanted["VariantName"] != made.variant["VariantName"]:
            raise invalid(f'Could not find variant "{wanted["VariantName"]}" of endpoint "{arn}".')
        count, weight = wanted.get("DesiredInstanceCount"), wanted.get("DesiredWeight", made.weight)
        if count is not None and (made.fleet is None or "InstanceType" not in made.variant):
            raise invalid(f'Cannot change the number of instances of endpoint "{arn}": its model has none of its own.')
        if count is not None and not 1 <= count <= MOST_INSTANCES:
            raise invalid(f"DesiredInstanceCount is {count}: it must be from 1 to {MOST_INSTANCES}.")
        if weight < 0:
            raise invalid(f"DesiredWeight is {weight}: it must not be less than 0.")
        if count is not None and made.name not in self._own:
            self._check_quota(made.variant["InstanceType"], count - made.instances[1])
        made.weight = weight
        if count is not None and made.fleet is not None:
            made.fleet.scaling.ask(count, time.monotonic_ns())
        return {"EndpointArn": arn}

    def _find(self, name: str, caller: Caller) -> Hosted:
        """An endpoint that there is. Raises AwsError."""
        found = self.registry.get(name) or self._find_own(name)
        if found is None:
            raise self.registry.missing(name, caller)
        return found

    def _find_own(self, name: str) -> Hosted | None:
        """The embedded endpoint by one of the names that it is known by."""
        config, own = self._world.config, self._world.fleets.own
        if name not in own.telemetry.names:
            return None
        variant = {
            "VariantName": VARIANT,
            "ModelName": name,
            "InitialInstanceCount": config.instances,
            "InstanceType": instance_type(config),
            "InitialVariantWeight": 1.0,
        }
        made = Hosted(
            name=name,
            created_at=own.telemetry.started_at,
            status=IN_SERVICE,
            config_name=name + _CONFIG_SUFFIX,
            variant=variant,
            model={},
            interval_s=config.publish_interval_s,
            fleet=own,
        )
        return self._own.setdefault(name, made)

    def _describe_config(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        name = request["EndpointConfigName"]
        own = self._find_own(name.removesuffix(_CONFIG_SUFFIX)) if name.endswith(_CONFIG_SUFFIX) else None
        if own is None:
            return self._configs.described(name, caller)
        return {
            "EndpointConfigName": name,
            "EndpointConfigArn": self._configs.registry.arn(name, caller),
            "ProductionVariants": [own.variant],
            "CreationTime": own.created_at,
            "MetricsConfig": _metrics_config(own.interval_s),
        }


def _variant(made: Hosted) -> dict[str, Any]:
    """The summary of the variant: what there is of it, and what was asked for."""
    weights = {"CurrentWeight": made.weight, "DesiredWeight": made.weight}
    fields = {"VariantName": made.variant["VariantName"], **weights}
    if "ServerlessConfig" in made.variant:
        settings = made.variant["ServerlessConfig"]
        return {**fields, "CurrentServerlessConfig": settings, "DesiredServerlessConfig": settings}
    current, desired = made.instances
    routing = {"RoutingConfig": made.variant["RoutingConfig"]} if "RoutingConfig" in made.variant else {}
    return {**fields, "CurrentInstanceCount": current, "DesiredInstanceCount": desired, **routing}


def _metrics_config(interval_s: int) -> dict[str, Any]:
    return {"EnableEnhancedMetrics": True, "MetricPublishFrequencyInSeconds": interval_s}
