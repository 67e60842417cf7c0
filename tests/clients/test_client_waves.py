"""The fast clients in real waves: what the worker's watch sees of them, what is recorded, what the server saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.embedded.aws.boto3_settings import isolated

if TYPE_CHECKING:
    from tests.bench import Bench, Finished

pytestmark = pytest.mark.process

PAYLOADS = """

def payload_factory():
    return {"pre_computed": True, "input": [PAYLOAD]}
"""
HTTP = """
import os
from inference_benchmarker.clients import HttpClient


def invoke_factory():
    client = HttpClient(os.environ["TARGET"] + "/invocations")
    return client.post
""" + PAYLOADS.replace("PAYLOAD", '{"inputs": "a"}')
SAGEMAKER = """
from inference_benchmarker.clients import SageMakerClient


def invoke_factory():
    client = SageMakerClient()
    return lambda body: client.invoke_endpoint(EndpointName="e", Body=body)["Body"].read()
""" + PAYLOADS.replace("PAYLOAD", 'b"{}"')
OPENAI = """
import os
from inference_benchmarker.clients import OpenAIClient


def invoke_factory():
    return OpenAIClient(os.environ["TARGET"] + "/v1").stream_chat
""" + PAYLOADS.replace("PAYLOAD", '{"model": "m", "messages": [{"role": "user", "content": "one two"}]}')


def connections(wave: Finished) -> dict[str, int]:
    """What the one worker's watch counted."""
    counted: dict[str, int] = wave.summary["client"]["workers"][0]["connections"]
    return counted


@pytest.mark.parametrize("factories", [HTTP, SAGEMAKER, OPENAI], ids=["http", "sagemaker", "openai"])
def test_as_many_connections_as_requests_in_flight_and_none_is_waited_for(bench: Bench, factories: str) -> None:
    with bench.endpoint(servers=100, service_s=0.1, tokens=4) as endpoint:
        settings = isolated({}, endpoint.url)
        wave = bench.run(
            "--concurrency", 40, "--num-requests", 400, factories=factories, target=endpoint, environment=settings
        )
        log = endpoint.arrivals()
    assert wave.ledger["ok"] == 400 == len(log["sequence"])
    assert len(set(log["connection"])) == connections(wave)["opened"] == 40
    assert connections(wave)["waiting"] == connections(wave)["discarded"] == connections(wave)["retries"] == 0
    assert "connection_pool" not in wave.findings


def test_tokens_and_usage_are_recorded(bench: Bench) -> None:
    with bench.endpoint(servers=100, service_s=0.1, tokens=4) as endpoint:
        wave = bench.run("--client-rps", 50, "--num-requests", 50, factories=OPENAI, target=endpoint)
    assert {(row["chunks"], row["tokens_in"], row["tokens_out"]) for row in wave.rows} == {(4, 2, 4)}
    assert all(row["first_token"] - row["sent"] >= 25_000_000 for row in wave.rows)
    assert {row["label"] for row in wave.rows} == {"m"}


def test_what_breaks_is_counted_once_and_under_its_name(bench: Bench) -> None:
    shares = {"error_share": 0.2, "close_share": 0.2, "break_share": 0.2, "error_status": 503, "seed": 3}
    with bench.endpoint(servers=100, service_s=0.02, tokens=4, **shares) as endpoint:
        wave = bench.run("--client-rps", 100, "--num-requests", 100, factories=OPENAI, target=endpoint)
        arrived = len(endpoint.arrivals()["sequence"])
    assert arrived == 100, "nothing was sent twice"
    assert set(wave.errors()) == {"InternalServerError 503", "APIConnectionError broken", "APIError server_error"}
    broken = [row for row in wave.rows if row["error"] == "APIError server_error"]
    assert broken
    assert all(row["chunks"] == 2 and row["first_token"] is not None for row in broken)
