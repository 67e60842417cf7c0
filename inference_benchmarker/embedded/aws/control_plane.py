"""SageMaker's DescribeEndpoint and DescribeEndpointConfig, of the endpoints that telemetry knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import ACCOUNT, AwsError, Caller, Service
from inference_benchmarker.embedded.aws.gauges import instance_type
from inference_benchmarker.embedded.aws.telemetry import VARIANT, Telemetry

if TYPE_CHECKING:
    from inference_benchmarker.embedded.config import EndpointConfig

TARGET_PREFIX = "SageMaker"
_CONFIG_SUFFIX = "-config"


class ControlPlane:
    """The operations. Every endpoint is in service, and its configuration is named after it."""

    def __init__(self, config: EndpointConfig, telemetry: Telemetry) -> None:
        self._config = config
        self._telemetry = telemetry
        operations = {
            "DescribeEndpoint": self._describe_endpoint,
            "DescribeEndpointConfig": self._describe_endpoint_config,
        }
        self.service = Service("sagemaker", operations)

    def _describe_endpoint(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        name = request["EndpointName"]
        arn = _arn(caller, "endpoint", name)
        if name not in self._telemetry.names:
            raise AwsError("ValidationException", f'Could not find endpoint "{arn}".')
        count = self._config.instances
        variant = {
            "VariantName": VARIANT,
            "CurrentWeight": 1.0,
            "DesiredWeight": 1.0,
            "CurrentInstanceCount": count,
            "DesiredInstanceCount": count,
        }
        return {
            "EndpointName": name,
            "EndpointArn": arn,
            "EndpointConfigName": name + _CONFIG_SUFFIX,
            "ProductionVariants": [variant],
            "EndpointStatus": "InService",
            "CreationTime": self._telemetry.started_at,
            "LastModifiedTime": self._telemetry.started_at,
            "MetricsConfig": self._metrics_config(),
        }

    def _describe_endpoint_config(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        name = request["EndpointConfigName"]
        arn = _arn(caller, "endpoint-config", name)
        if name not in [endpoint + _CONFIG_SUFFIX for endpoint in self._telemetry.names]:
            raise AwsError("ValidationException", f'Could not find endpoint configuration "{arn}".')
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


def _arn(caller: Caller, kind: str, name: str) -> str:
    return f"arn:aws:sagemaker:{caller.region}:{ACCOUNT}:{kind}/{name.lower()}"
