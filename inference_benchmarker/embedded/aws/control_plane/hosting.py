"""The configuration of a fleet that was made here, from its variant and its model."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.instance_types import known_type
from inference_benchmarker.embedded.queueing.routed import SHARED
from inference_benchmarker.embedded.synthetic_types import InstanceType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.embedded.aws.control_plane.hosted import Hosted
    from inference_benchmarker.embedded.config import EndpointConfig

# SageMaker's own variable: the processes of the model server on an instance.
_WORKERS = "SAGEMAKER_MODEL_SERVER_WORKERS"
# Of memory, for a serverless worker as fast as a server of speed 1; made up.
_FULL_SPEED_MB = 2048
_ROUTINGS = {"RANDOM": "random", "LEAST_OUTSTANDING_REQUESTS": "least_outstanding"}
# Models in memory where nothing says how many there may be.
_MODELS = 10


def on_instances(base: EndpointConfig, made: Hosted, name: str, count: int) -> EndpointConfig | None:
    """So many instances of its variant's type with its model, for the endpoint of that name; None: there are none.

    The model's server has a worker for each server of an instance, unless SAGEMAKER_MODEL_SERVER_WORKERS in its
    environment says fewer.
    """
    kind = made.variant["InstanceType"]
    found = known_type(base, kind)
    if found is None:
        return None
    container = _container(made.model or {})
    workers = container.get("Environment", {}).get(_WORKERS, "")
    each = min(found.servers, int(workers)) if workers.isdecimal() and int(workers) else found.servers
    models = (base.models_in_memory or _MODELS) if container.get("Mode") == "MultiModel" else None
    config = _sized(base, made, InstanceType(each, found.speed), count)
    strategy = made.variant.get("RoutingConfig", {}).get("RoutingStrategy", "RANDOM")
    return replace(config, endpoint_name=name, instance_type=kind, models_in_memory=models, routing=_ROUTINGS[strategy])


def serverless(base: EndpointConfig, made: Hosted) -> EndpointConfig:
    """A serverless endpoint: a server for each request that it may work on at a time, and no queue."""
    settings = made.variant["ServerlessConfig"]
    speed = settings["MemorySizeInMB"] / _FULL_SPEED_MB
    config = _sized(base, made, InstanceType(settings["MaxConcurrency"], speed), 1)
    return replace(config, routing=SHARED, queue_limit=0, most_servers=None, batch_size=1)


def _sized(base: EndpointConfig, made: Hosted, each: InstanceType, count: int) -> EndpointConfig:
    """As the base, but of so many instances. What is drawn is drawn by the name, so that no two are alike."""
    servers = each.servers * count
    return replace(
        base,
        endpoint_name=made.name,
        servers=servers,
        service_s=base.service_s / each.speed,
        most_servers=base.most_servers and max(servers, servers * base.most_servers // base.servers),
        instances=count,
        models_in_memory=None,
        publish_interval_s=made.interval_s,
        seed=base.seed ^ zlib.crc32(made.name.encode()),
    )


def _container(model: Mapping[str, Any]) -> Mapping[str, Any]:
    """The container that answers: a pipeline's first."""
    found: Mapping[str, Any] = model.get("PrimaryContainer") or next(iter(model.get("Containers") or ()), {})
    return found
