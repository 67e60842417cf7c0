"""A SageMaker control plane that answers what a test wants, and what is produced from it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError, ConnectTimeoutError

US = "us-east-1"

ALL_TRAFFIC = {"VariantName": "AllTraffic", "CurrentInstanceCount": 2}

CONFIGURED = {"VariantName": "AllTraffic", "InstanceType": "ml.m5.xlarge"}


def refused(code: str, message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Describe")


NOT_FOUND = refused("ValidationException", 'Could not find endpoint "arn:aws:sagemaker:us-east-1:1:endpoint/e".')

DENIED = refused("AccessDeniedException")

UNREACHABLE = ConnectTimeoutError(endpoint_url="https://api.sagemaker.us-east-1.amazonaws.com/")


class SageMaker:
    """Describes every endpoint alike; an exception is raised. ``asked``: the endpoints."""

    meta = SimpleNamespace(region_name=US)

    def __init__(
        self, endpoint: dict[str, Any] | Exception | None = None, config: dict[str, Any] | Exception | None = None
    ) -> None:
        self._endpoint = {"ProductionVariants": [ALL_TRAFFIC]} if endpoint is None else endpoint
        self._config = {"ProductionVariants": [CONFIGURED]} if config is None else config
        self.asked: list[str] = []

    def describe_endpoint(self, EndpointName: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        self.asked.append(EndpointName)
        if isinstance(self._endpoint, Exception):
            raise self._endpoint
        return {"EndpointName": EndpointName, "EndpointConfigName": f"{EndpointName}-config", **self._endpoint}

    def describe_endpoint_config(self, EndpointConfigName: str) -> dict[str, Any]:  # noqa: N803
        assert EndpointConfigName.endswith("-config")
        if isinstance(self._config, Exception):
            raise self._config
        return self._config


def produced(*variants: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"ProductionVariants": list(variants), **more}
