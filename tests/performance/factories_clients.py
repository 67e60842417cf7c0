"""The clients under measurement; BENCHMARK_PERF_CLIENT says which: openai, sagemaker or boto3.

BENCHMARK_PERF_URL is the server's address, BENCHMARK_PERF_N how many numbered payloads there are.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from inference_benchmarker.clients import OpenAIClient, SageMakerClient

if TYPE_CHECKING:
    from collections.abc import Callable

CONNECTIONS = 10_000


def invoke_factory() -> Callable[[bytes], Any]:
    url = os.environ["BENCHMARK_PERF_URL"]
    which = os.environ["BENCHMARK_PERF_CLIENT"]
    if which == "openai":
        return OpenAIClient(url).stream_chat
    session = boto3.Session("key", "secret", region_name="us-east-1")
    settings = Config(max_pool_connections=CONNECTIONS, retries={"total_max_attempts": 1, "mode": "standard"})
    client: Any = (
        SageMakerClient(session=session, endpoint_url=url)
        if which == "sagemaker"
        else session.client("sagemaker-runtime", endpoint_url=url, config=settings)
    )

    def invoke(payload: bytes) -> bytes:
        body: bytes = client.invoke_endpoint(EndpointName="e", ContentType="text/plain", Body=payload)["Body"].read()
        return body

    return invoke


def payload_factory() -> dict[str, Any]:
    count = int(os.environ["BENCHMARK_PERF_N"])
    return {"pre_computed": True, "input": [b"%d" % number for number in range(count)]}
