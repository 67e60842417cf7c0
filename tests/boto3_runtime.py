"""Clients of boto3 for the embedded endpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from inference_benchmarker.embedded.aws.boto3_settings import isolated

if TYPE_CHECKING:
    import pytest

    from inference_benchmarker.embedded.running import RunningEndpoint

PART = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
"""The headers of a part of a stream."""


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


def isolate(patch: pytest.MonkeyPatch) -> None:
    """Credentials and region, and nothing of the machine's own settings."""
    for name in [*os.environ]:
        if name.startswith("AWS_"):
            patch.delenv(name)
    for name, value in isolated({}, "http://unused").items():
        if not name.startswith("AWS_ENDPOINT_URL"):
            patch.setenv(name, value)
