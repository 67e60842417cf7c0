"""Clients of boto3 for the embedded endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from inference_benchmarker.embedded.running import RunningEndpoint


def client(endpoint: RunningEndpoint, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=endpoint.url,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1, "mode": "standard"}),
    )


def runtime(endpoint: RunningEndpoint) -> Any:
    return client(endpoint, "sagemaker-runtime")
