"""The control plane as a service of AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws.aws_json import Service
from inference_benchmarker.embedded.aws.control_plane.components import Components
from inference_benchmarker.embedded.aws.control_plane.definitions import EndpointConfigs, Models
from inference_benchmarker.embedded.aws.control_plane.endpoints import Endpoints
from inference_benchmarker.embedded.aws.control_plane.tags import Tags

if TYPE_CHECKING:
    from inference_benchmarker.embedded.aws.control_plane.hosted import World

TARGET_PREFIX = "SageMaker"


def control_plane(world: World) -> Service:
    """All of its operations."""
    tags = Tags()
    models = Models(tags, world.now)
    configs = EndpointConfigs(models.registry, tags, world.now)
    endpoints = Endpoints(world, models.registry, configs, tags)
    components = Components(world, models.registry, endpoints.registry, tags)
    parts = (models, configs, endpoints, components, tags)
    return Service("sagemaker", {name: operation for part in parts for name, operation in part.operations.items()})
