"""The endpoint that is measured, as its factory's arguments and SageMaker describe it: what a plan needs to know of it.

SageMaker is asked where there are credentials and a name that may be one of its endpoints'. What it refuses to tell is
not known, and no failure.
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeEndpointConfig.html
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.wording import pluralize
from server_capacity.metrics.aws_answers import NoAnswerError, pages, region_of
from server_capacity.results.types.bounds import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from server_capacity.metrics.config import MetricsBlock

    Answer = Mapping[str, Any]

RANDOM = "RANDOM"
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_COUNTS = ("instances", "instance_count")
_COUNTED = ("variant", "multi-model")
"""Kinds of endpoints whose instances are what a factory's argument counts: those of a component may be its copies."""


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
    described, is_whole = Endpoint(), True
    if named and _NAME.fullmatch(named):
        described, is_whole = _described(named, dimensions.get("VariantName"))
    return replace(
        made_with(described, arguments or {}, named or "the endpoint", is_whole=is_whole),
        name=None if named is None else redact(named),  # as plan.json has it
        arguments=None if arguments is None else dict(arguments),
        payload_arguments=None if payload_arguments is None else dict(payload_arguments),
        seconds_to_create=seconds,
    )


def made_with(described: Endpoint, given: Mapping[str, Any], name: str, *, is_whole: bool) -> Endpoint:
    """The endpoint with the type and the number of its instances: those that SageMaker describes, else those given.

    BenchmarkError where it runs on others than endpoint_factory was ``given``: a file that ignores an argument would
    have what it made taken for something else. ``is_whole``: no other variant of the endpoint has instances.
    """
    kind = given.get("instance_type")
    key = next((key for key in _COUNTS if isinstance(given.get(key), int)), None)
    count, there = None if key is None else given[key], described.instances
    if kind and described.instance_type not in (None, kind):
        raise _ignored(name, str(described.instance_type), f"instance_type={kind}")
    is_counted = is_whole and described.kind in _COUNTED and there is not None
    if is_counted and count not in (None, there):
        raise _ignored(name, pluralize(there or 0, "instance", "instances"), f"{key}={count}")
    is_typed = described.kind is not None
    return replace(
        described,
        instance_type=described.instance_type if is_typed else kind,
        instances=there if is_counted or described.kind == "serverless" else count or there,
    )


def _ignored(name: str, there: str, given: str) -> BenchmarkError:
    return BenchmarkError(
        f"{name}: SageMaker runs it on {there}, and endpoint_factory was given {given}.",
        "Let the file create the endpoint with this argument.",
    )


def _described(name: str, variant: str | None) -> tuple[Endpoint, bool]:
    """The facts that SageMaker reports, and whether they are of the whole endpoint; nothing where it says nothing."""
    region = region_of(None)
    if region is None:
        return Endpoint(), True
    try:
        (answer,) = pages("sagemaker", region, "describe_endpoint", {"EndpointName": name})
        asked = {"EndpointConfigName": answer["EndpointConfigName"]}
        (configuration,) = pages("sagemaker", region, "describe_endpoint_config", asked)
        found = endpoint_facts(answer, configuration, variant, _modes(configuration, region))
        return replace(found, region=region), len(configuration["ProductionVariants"]) == 1
    except (NoAnswerError, AttributeError, KeyError, TypeError, ValueError):
        return Endpoint(), True


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
