"""The endpoint that is measured, as its factory's arguments and SageMaker describe it: what a plan needs to know of it.

SageMaker is asked where there are credentials and a name that may be one of its endpoints'. What it refuses to tell is
not known, and no failure.
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeEndpointConfig.html
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from server_capacity.metrics.aws_answers import NoAnswerError, pages, region_of
from server_capacity.results.types.bounds import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from server_capacity.metrics.config import MetricsBlock

    Answer = Mapping[str, Any]

RANDOM = "RANDOM"
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_COUNTS = ("instances", "instance_count")


def measured_endpoint(
    name: str | None,
    arguments: Mapping[str, Any] | None,
    payload_arguments: Mapping[str, Any] | None,
    seconds: float | None,
    blocks: Iterable[MetricsBlock] = (),
) -> Endpoint:
    """The ``endpoint`` of capacity.json.

    ``arguments``: endpoint_factory's, and ``seconds`` that it took; None where the endpoint was there. ``blocks``: of
    the endpoint configuration, which may name the endpoint and its variant.
    """
    dimensions: dict[str, str] = {}
    for block in blocks:
        dimensions |= dict(block.dimensions)
    named = name or dimensions.get("EndpointName")
    described = _described(named, dimensions.get("VariantName")) if named and _NAME.fullmatch(named) else Endpoint()
    given = arguments or {}
    count = next((given[key] for key in _COUNTS if isinstance(given.get(key), int)), None)
    return replace(
        described,
        name=named,
        arguments=None if arguments is None else dict(arguments),
        payload_arguments=None if payload_arguments is None else dict(payload_arguments),
        instance_type=given.get("instance_type") or described.instance_type,
        instances=count or described.instances,
        seconds_to_create=seconds,
    )


def _described(name: str, variant: str | None) -> Endpoint:
    """The facts that SageMaker reports; nothing where it says nothing."""
    region = region_of(None)
    if region is None:
        return Endpoint()
    try:
        (answer,) = pages("sagemaker", region, "describe_endpoint", {"EndpointName": name})
        asked = {"EndpointConfigName": answer["EndpointConfigName"]}
        (configuration,) = pages("sagemaker", region, "describe_endpoint_config", asked)
        found = endpoint_facts(answer, configuration, variant, _modes(configuration, region))
        return replace(found, region=region)
    except (NoAnswerError, AttributeError, KeyError, TypeError, ValueError):
        return Endpoint()


def _modes(configuration: Answer, region: str) -> set[str]:
    """The modes of the containers of the variants' models; none where that may not be read."""
    modes: set[str] = set()
    for model in {each["ModelName"] for each in configuration.get("ProductionVariants", []) if each.get("ModelName")}:
        try:
            (answer,) = pages("sagemaker", region, "describe_model", {"ModelName": model})
        except NoAnswerError:
            return set()
        containers = [answer.get("PrimaryContainer") or {}, *(answer.get("Containers") or [])]
        modes |= {str(each["Mode"]) for each in containers if each.get("Mode")}
    return modes


def endpoint_facts(endpoint: Answer, configuration: Answer, variant: str | None, modes: set[str]) -> Endpoint:
    """The facts of a variant (None: the first one), from answers of DescribeEndpoint and DescribeEndpointConfig."""
    variants = {each["VariantName"]: each for each in configuration.get("ProductionVariants", [])}
    running = {each["VariantName"]: each for each in endpoint.get("ProductionVariants", [])}
    which = variant if variant in variants else next(iter(variants), None)
    if which is None:
        return Endpoint()
    configured, now = variants[which], running.get(which, {})
    kind = _kind(list(variants.values()), configured, now, modes)
    routing = (configured.get("RoutingConfig") or {}).get("RoutingStrategy", RANDOM)
    return Endpoint(
        kind=kind,
        variant=which,
        instance_type=None if kind in ("serverless", "mixed") else configured.get("InstanceType"),
        instances=None if kind == "serverless" else now.get("CurrentInstanceCount"),
        routing=None if kind == "serverless" else routing,
    )


def _kind(variants: list[Answer], configured: Answer, now: Answer, modes: set[str]) -> str:
    if any(each.get(key) for each in (configured, now) for key in ("ServerlessConfig", "CurrentServerlessConfig")):
        return "serverless"
    types = {each.get("InstanceType") for each in variants}
    if len(types) > 1 or any(each.get("InstancePools") for each in (*variants, now)):
        return "mixed"
    if "MultiModel" in modes or any(each.get("ModelCacheConfig") for each in (configured, now)):
        return "multi-model"
    return "variant" if configured.get("ModelName") else "inference-component"
