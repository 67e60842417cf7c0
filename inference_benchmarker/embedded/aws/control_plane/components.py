"""Inference components: copies of a model on the instances of an endpoint that has no model of its own.

The simplest form of them: each copy takes a whole instance, whatever it requires, and all of a component's requests
wait in one queue for its copies unless the endpoint's routing says otherwise.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.control_plane.hosted import (
    CREATING,
    DELETING,
    DELETING_SHARE,
    FAILED,
    IN_SERVICE,
    Hosted,
)
from inference_benchmarker.embedded.aws.control_plane.hosting import on_instances
from inference_benchmarker.embedded.aws.control_plane.registry import Registry, Resource, invalid
from inference_benchmarker.embedded.aws.telemetry import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.embedded.aws.aws_json import Caller, Operation
    from inference_benchmarker.embedded.aws.control_plane.hosted import World
    from inference_benchmarker.embedded.aws.control_plane.tags import Tags

_NO_ROOM = "There are not enough hardware resources on the instances for this inference component's copies."


class Components:
    """The operations."""

    def __init__(self, world: World, models: Registry[Resource], endpoints: Registry[Hosted], tags: Tags) -> None:
        self.registry: Registry[Hosted] = Registry("inference component", "InferenceComponent", "inference-component")
        self._world = world
        self._models = models
        self._endpoints = endpoints
        self._tags = tags
        tags.cover(self.registry)
        self.operations: Mapping[str, Operation] = {
            "CreateInferenceComponent": self._create,
            "DescribeInferenceComponent": self._describe,
            "ListInferenceComponents": self._list,
            "UpdateInferenceComponentRuntimeConfig": self._update,
            "DeleteInferenceComponent": self._delete,
        }

    def _create(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        endpoint = self._endpoints.find(request["EndpointName"], caller)
        if endpoint.status != IN_SERVICE or endpoint.model is not None:
            arn = self._endpoints.arn(endpoint.name, caller)
            raise invalid(f'Endpoint "{arn}" must be in service, and have no model of its own.')
        specification = request["Specification"]
        container = specification.get("Container")
        model = {"PrimaryContainer": container} if container else self._model(specification, caller)
        copies = request["RuntimeConfig"]["CopyCount"]
        if copies < 1:
            raise invalid(f"CopyCount is {copies}: it must be at least 1.")
        made = Hosted(
            name=request["InferenceComponentName"],
            created_at=self._world.now(),
            status=CREATING,
            content=request,
            config_name=endpoint.name,
            variant={**endpoint.variant, "InitialInstanceCount": copies},
            model=model,
            interval_s=endpoint.interval_s,
        )
        arn = self.registry.add(made, caller)
        self._tags.put(arn, request)
        self._world.later(self._world.config.create_s, partial(self._begin, made, endpoint))
        return {"InferenceComponentArn": arn}

    def _model(self, specification: dict[str, Any], caller: Caller) -> Mapping[str, Any]:
        if "ModelName" not in specification:
            raise invalid("A specification needs either a ModelName or a Container.")
        return self._models.find(specification["ModelName"], caller).content

    def _begin(self, made: Hosted, endpoint: Hosted) -> None:
        """Its copies are there, or had no room."""
        world, place = self._world, Place(made.variant["VariantName"], made.name)
        copies = made.instances[1]
        config = on_instances(world.config, made, endpoint.name, copies)
        if endpoint.status != IN_SERVICE or config is None or not self._has_room(made, endpoint, copies):
            made.reason = _NO_ROOM
            made.turn(FAILED, world.now())
            return
        made.fleet = world.make(config, place, False)
        world.fleets.add(endpoint.name, made.fleet, made.name)
        made.turn(IN_SERVICE, world.now())

    def _has_room(self, made: Hosted, endpoint: Hosted, copies: int) -> bool:
        """Tells whether the endpoint has an instance for each copy beside those of its other components."""
        others = [each for each in self.registry if each.config_name == endpoint.name and each is not made]
        taken = sum(max(each.instances) for each in others if each.status == IN_SERVICE)
        return taken + copies <= endpoint.instances[0]

    def _describe(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        made = self.registry.find(request["InferenceComponentName"], caller)
        current, desired = made.instances
        fields = {
            **self._named(made, caller),
            "Specification": _specification(made.content["Specification"]),
            "RuntimeConfig": {"DesiredCopyCount": desired, "CurrentCopyCount": current},
        }
        return fields if made.reason is None else {**fields, "FailureReason": made.reason}

    def _named(self, made: Hosted, caller: Caller) -> dict[str, Any]:
        return {
            "InferenceComponentName": made.name,
            "InferenceComponentArn": self.registry.arn(made.name, caller),
            "EndpointName": made.config_name,
            "EndpointArn": self._endpoints.arn(made.config_name, caller),
            "VariantName": made.variant["VariantName"],
            "InferenceComponentStatus": made.shown_status,
            "CreationTime": made.created_at,
            "LastModifiedTime": made.shown_change,
        }

    def _list(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        of = request.get("EndpointNameEquals")
        found = [made for made in self.registry if of in (None, made.config_name)]
        answer = self.registry.page(found, request, caller, changes=True)
        names = [each["InferenceComponentName"] for each in answer["InferenceComponents"]]
        return {
            **answer,
            "InferenceComponents": [self._named(self.registry.find(name, caller), caller) for name in names],
        }

    def _update(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        made = self.registry.find(request["InferenceComponentName"], caller)
        arn, copies = self.registry.arn(made.name, caller), request["DesiredRuntimeConfig"]["CopyCount"]
        if made.shown_status != IN_SERVICE or made.fleet is None:
            raise invalid(f'Cannot update in-progress inference component "{arn}".')
        if copies < 1 or not self._has_room(made, self._endpoints.find(made.config_name, caller), copies):
            raise invalid(f"CopyCount is {copies}: it must be at least 1, and there must be an instance for each.")
        made.fleet.scaling.ask(copies, time.monotonic_ns())
        return {"InferenceComponentArn": arn}

    def _delete(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        made, world = self.registry.find(request["InferenceComponentName"], caller), self._world
        if made.shown_status not in (IN_SERVICE, FAILED):
            arn = self.registry.arn(made.name, caller)
            raise invalid(f'Cannot update in-progress inference component "{arn}".')
        made.fleet = None
        made.turn(DELETING, world.now())
        world.fleets.remove(made.config_name, made.name, time.monotonic_ns())
        world.later(world.config.create_s * DELETING_SHARE, partial(self._end, made, caller))
        return {}

    def _end(self, made: Hosted, caller: Caller) -> None:
        self.registry.remove(made.name, caller)
        self._tags.drop(self.registry.arn(made.name, caller))


def _specification(given: Mapping[str, Any]) -> dict[str, Any]:
    """As it is described: the container's image has become a deployed one."""
    fields = dict(given)
    if container := fields.pop("Container", None):
        image = {"SpecifiedImage": container["Image"]} if "Image" in container else {}
        fields["Container"] = {
            **{name: value for name, value in container.items() if name != "Image"},
            "DeployedImage": image,
        }
    return fields
