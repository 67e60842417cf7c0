"""SageMaker's DescribeEndpoint, DescribeEndpointConfig and UpdateEndpointWeightsAndCapacities.

Of the endpoints that telemetry knows, which all are on the same instances.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import ACCOUNT, AwsError, Caller, Service
from inference_benchmarker.embedded.aws.gauges import instance_type
from inference_benchmarker.embedded.aws.telemetry import VARIANT, Telemetry

if TYPE_CHECKING:
    from inference_benchmarker.embedded.aws.scaling import EndpointScaling
    from inference_benchmarker.embedded.config import EndpointConfig

TARGET_PREFIX = "SageMaker"
# Beyond SageMaker's own quotas; a slip of the hand should not cost this machine its memory.
MOST_INSTANCES = 10_000
_CONFIG_SUFFIX = "-config"


class ControlPlane:
    """The operations. Every endpoint is in service or updating, and its configuration is named after it."""

    def __init__(self, config: EndpointConfig, telemetry: Telemetry, scaling: EndpointScaling) -> None:
        self._config = config
        self._telemetry = telemetry
        self._scaling = scaling
        self._weight = 1.0
        operations = {
            "DescribeEndpoint": self._describe_endpoint,
            "DescribeEndpointConfig": self._describe_endpoint_config,
            "UpdateEndpointWeightsAndCapacities": self._update_capacities,
        }
        self.service = Service("sagemaker", operations)

    def _describe_endpoint(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        name, arn = self._known(request, caller)
        instances = self._scaling.instances
        variant = {
            "VariantName": VARIANT,
            "CurrentWeight": self._weight,
            "DesiredWeight": self._weight,
            "CurrentInstanceCount": instances.current,
            "DesiredInstanceCount": instances.desired,
        }
        return {
            "EndpointName": name,
            "EndpointArn": arn,
            "EndpointConfigName": name + _CONFIG_SUFFIX,
            "ProductionVariants": [variant],
            "EndpointStatus": "Updating" if instances.updating else "InService",
            "CreationTime": self._telemetry.started_at,
            "LastModifiedTime": self._scaling.changed_at,
            "MetricsConfig": self._metrics_config(),
        }

    def _update_capacities(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        _, arn = self._known(request, caller)
        if self._scaling.instances.updating:
            raise _invalid(f'Cannot update endpoint "{arn}" while it is being updated.')
        (wanted,) = request["DesiredWeightsAndCapacities"]
        if wanted["VariantName"] != VARIANT:
            raise _invalid(f'Could not find variant "{wanted["VariantName"]}" of endpoint "{arn}".')
        count, weight = wanted.get("DesiredInstanceCount"), wanted.get("DesiredWeight", self._weight)
        if count is not None and not 1 <= count <= MOST_INSTANCES:
            raise _invalid(f"DesiredInstanceCount is {count}: it must be from 1 to {MOST_INSTANCES}.")
        if weight < 0:
            raise _invalid(f"DesiredWeight is {weight}: it must not be less than 0.")
        self._weight = weight
        if count is not None:
            self._scaling.ask(count, time.monotonic_ns())
        return {"EndpointArn": arn}

    def _known(self, request: dict[str, Any], caller: Caller) -> tuple[str, str]:
        """The name and the ARN of an endpoint that there is."""
        name = request["EndpointName"]
        arn = _arn(caller, "endpoint", name)
        if name not in self._telemetry.names:
            raise _invalid(f'Could not find endpoint "{arn}".')
        return name, arn

    def _describe_endpoint_config(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        name = request["EndpointConfigName"]
        arn = _arn(caller, "endpoint-config", name)
        if name not in [endpoint + _CONFIG_SUFFIX for endpoint in self._telemetry.names]:
            raise _invalid(f'Could not find endpoint configuration "{arn}".')
        variant = {
            "VariantName": VARIANT,
            "ModelName": name.removesuffix(_CONFIG_SUFFIX),
            "InitialInstanceCount": self._config.instances,
            "InstanceType": instance_type(self._config),
            "InitialVariantWeight": 1.0,
        }
        return {
            "EndpointConfigName": name,
            "EndpointConfigArn": arn,
            "ProductionVariants": [variant],
            "CreationTime": self._telemetry.started_at,
            "MetricsConfig": self._metrics_config(),
        }

    def _metrics_config(self) -> dict[str, Any]:
        return {
            "EnableEnhancedMetrics": True,
            "MetricPublishFrequencyInSeconds": self._config.publish_interval_s,
        }


def _invalid(message: str) -> AwsError:
    return AwsError("ValidationException", message)


def _arn(caller: Caller, kind: str, name: str) -> str:
    return f"arn:aws:sagemaker:{caller.region}:{ACCOUNT}:{kind}/{name.lower()}"
