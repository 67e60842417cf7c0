"""Asks SageMaker what a wave's endpoints run on. Its answers explain metrics, so that a refusal is no failure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.server_metric import Hardware
from server_capacity.metrics import aws_client
from server_capacity.metrics.aws_failures import UNREADABLE, call_failure, is_denied
from server_capacity.metrics.cloudwatch.instance_types import gpus, vcpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from server_capacity.metrics.cloudwatch.block import CloudWatchBlock, Variant

CONNECT_S, READ_S, ATTEMPTS = 2, 5, 2
PERMISSION = "sagemaker:DescribeEndpoint"
_NOT_ONE_TYPE = ("CurrentServerlessConfig", "DesiredServerlessConfig", "ServerlessConfig", "InstancePools")
"""What a variant has that does not run on instances, or on those of several types."""


@dataclass(frozen=True, slots=True)
class Described:
    """A variant as it is known: its hardware; or that it does not exist, in words; or neither.

    ``denied``: that these credentials may not ask, in words.
    """

    hardware: Hardware | None = None
    absent: str | None = None
    denied: str | None = None


def make_client(region: str) -> Any | None:
    """A client of SageMaker's control plane that gives up early; None where AWS's configuration makes none."""
    from botocore.exceptions import BotoCoreError

    try:
        return aws_client.make_client("sagemaker", region, attempts=ATTEMPTS, connect_s=CONNECT_S, read_s=READ_S)
    except (BotoCoreError, ValueError):
        return None


def variants(blocks: Iterable[CloudWatchBlock]) -> dict[Variant, str | None]:
    """The variants whose metrics are asked for, with the instance type that a block gives."""
    given: dict[Variant, str | None] = {}
    for block in blocks:
        if (variant := block.variant) is not None:
            given[variant] = given.get(variant) or block.instance_type
    return given


def describe(client: Any | None, given: Mapping[Variant, str | None]) -> dict[Variant, Described]:
    """SageMaker's description of each variant; without one, the type that was given. Raises nothing of AWS's."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    by_variant = {variant: Described(_hardware(kind)) for variant, kind in given.items()}
    if client is None:
        return by_variant
    for endpoint in dict.fromkeys(name for name, _ in given):
        here = {variant: kind for variant, kind in given.items() if variant[0] == endpoint}
        try:
            by_variant |= _endpoint(client, endpoint, here)
        except ClientError as error:
            if _is_not_found(error):
                absent = f"there is no endpoint {endpoint!r} in {client.meta.region_name}"
                by_variant |= dict.fromkeys(here, Described(absent=absent))
            elif is_denied(error):
                why = call_failure(error, client, PERMISSION).text
                denied = f"endpoint {endpoint!r}: {why}: its instances are not followed"
                by_variant |= {variant: replace(by_variant[variant], denied=denied) for variant in here}
        except (BotoCoreError, ResponseParserError, *UNREADABLE):
            break  # nobody answers there: another endpoint would only wait as long again
    return by_variant


def _endpoint(client: Any, endpoint: str, given: Mapping[Variant, str | None]) -> dict[Variant, Described]:
    answer = client.describe_endpoint(EndpointName=endpoint)
    serving = {each["VariantName"]: each for each in answer.get("ProductionVariants", [])}
    shadows = {each["VariantName"] for each in answer.get("ShadowProductionVariants", [])}
    types = _types(client, answer.get("EndpointConfigName"))
    described = {}
    for variant, kind in given.items():
        name = variant[1]
        if name in serving:
            described[variant] = _variant(serving[name], types.get(name, kind))
        elif name in shadows:
            described[variant] = Described()
        elif serving:  # an endpoint that is being created has no variants yet
            there = ", ".join(serving)
            described[variant] = Described(absent=f"endpoint {endpoint!r} has no variant {name!r}, only {there}")
    return described


def _types(client: Any, configuration: str | None) -> dict[str, str | None]:
    """The instance type of each variant, None where it is not one; nothing where that may not be read, or is gone."""
    from botocore.exceptions import ClientError

    if configuration is None:
        return {}
    try:
        answer = client.describe_endpoint_config(EndpointConfigName=configuration)
    except ClientError:
        return {}
    return {
        each["VariantName"]: None if _is_not_one_type(each) else each.get("InstanceType")
        for each in answer.get("ProductionVariants", [])
    }


def _variant(summary: Mapping[str, Any], kind: str | None) -> Described:
    if _is_not_one_type(summary):
        return Described()
    return Described(_hardware(kind, summary.get("CurrentInstanceCount")))


def _is_not_one_type(variant: Mapping[str, Any]) -> bool:
    return any(variant.get(key) for key in _NOT_ONE_TYPE)


def _hardware(kind: str | None, instances: int | None = None) -> Hardware | None:
    return None if kind is None else Hardware(kind, instances, vcpus(kind), gpus(kind))


def _is_not_found(error: Any) -> bool:
    """SageMaker answers a wrong name as it does a wrong request: only the message tells."""
    details = error.response.get("Error", {})
    return details.get("Code") == "ValidationException" and "Could not find endpoint" in details.get("Message", "")
