"""The embedded endpoint as Bedrock and Lambda, read by unmodified boto3."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import RunningEndpoint, start

if TYPE_CHECKING:
    from collections.abc import Iterator

MS = 1_000_000
MODEL = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0"
HELLO = {"role": "user", "content": [{"text": "one two"}, {"text": "three"}]}
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def instant() -> Iterator[RunningEndpoint]:
    """An endpoint whose service takes no time."""
    with start(EndpointConfig(service="none", tokens=4)) as endpoint:
        yield endpoint


def of(endpoint: RunningEndpoint, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=endpoint.url,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1, "mode": "standard"}, parameter_validation=False),
    )


def bedrock(endpoint: RunningEndpoint) -> Any:
    return of(endpoint, "bedrock-runtime")


def invoke(endpoint: RunningEndpoint, payload: bytes = b"{}") -> Any:
    return of(endpoint, "lambda").invoke(FunctionName="my-function:live", Payload=payload)


def test_converse_in_one_piece(instant: RunningEndpoint) -> None:
    found = bedrock(instant).converse(modelId=MODEL, messages=[HELLO], system=[{"text": "four five"}])
    assert found["output"]["message"] == {"role": "assistant", "content": [{"text": "0 1 2 3"}]}
    assert found["usage"] == {"inputTokens": 5, "outputTokens": 4, "totalTokens": 9}
    assert found["stopReason"] == "end_turn"
    limited = bedrock(instant).converse(modelId="a.b:0", messages=[HELLO], inferenceConfig={"maxTokens": 2})
    assert (limited["usage"]["outputTokens"], limited["stopReason"]) == (2, "max_tokens")


def test_a_stream_has_a_token_a_delta_when_it_is_due() -> None:
    with start(EndpointConfig(service_s=0.2, tokens=4)) as endpoint:
        stream = bedrock(endpoint).converse_stream(modelId=MODEL, messages=[HELLO])["stream"]
        seen = [(time.monotonic_ns(), event) for event in stream]
        log = endpoint.arrivals()
    kinds = [next(iter(event)) for _, event in seen]
    deltas = ["contentBlockDelta"] * 4
    assert kinds == ["messageStart", *deltas, "contentBlockStop", "messageStop", "metadata"]
    reported = [(at, event["contentBlockDelta"]["delta"]["text"]) for at, event in seen if "contentBlockDelta" in event]
    assert [text for _, text in reported] == ["0", " 1", " 2", " 3"]
    due = [log["start_ns"][0] + 50 * MS * (number + 1) for number in range(4)]
    assert all(at >= earliest for (at, _), earliest in zip(reported, due, strict=True))
    assert seen[-1][1]["metadata"]["usage"]["outputTokens"] == 4
    assert log["route"] == ["/model/{id}/converse-stream"]


def test_a_stream_that_breaks_says_so_in_the_middle() -> None:
    with start(EndpointConfig(service="none", tokens=4, break_share=1)) as endpoint:
        events = iter(bedrock(endpoint).converse_stream(modelId="m", messages=[HELLO])["stream"])
        assert [next(iter(next(events))) for _ in range(3)] == ["messageStart", *["contentBlockDelta"] * 2]
        with pytest.raises(EventStreamError, match="modelStreamErrorException"):
            next(events)


@pytest.mark.parametrize(
    ("status", "code", "answered"),
    [
        (429, "ThrottlingException", 429),
        (503, "ServiceUnavailableException", 503),
        (500, "InternalServerException", 500),
        (418, "ModelErrorException", 424),
    ],
)
def test_errors_are_bedrocks(status: int, code: str, answered: int) -> None:
    with start(EndpointConfig(service="none", error_share=1, error_status=status)) as endpoint:
        for call in (bedrock(endpoint).converse, bedrock(endpoint).converse_stream):
            with pytest.raises(ClientError) as raised:
                call(modelId="m", messages=[HELLO])
            response = raised.value.response
            assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == (code, answered)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "needs messages"),
        ({"messages": []}, "needs messages"),
        ({"messages": [{"role": "user"}]}, "must be a list"),
        ({"messages": [HELLO], "inferenceConfig": {"maxTokens": 0}}, "maxTokens is 0"),
    ],
)
def test_a_wrong_conversation_is_a_validation_exception(
    instant: RunningEndpoint, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ClientError, match=rf"ValidationException.*{said}"):
        bedrock(instant).converse(modelId="m", **wrong)


def test_a_function_answers_and_one_that_raised_answers_200_too(instant: RunningEndpoint) -> None:
    found = invoke(instant)
    assert (found["StatusCode"], found["ExecutedVersion"]) == (200, "$LATEST")
    assert "FunctionError" not in found
    assert json.loads(found["Payload"].read()) == {"predictions": [0.5]}
    with start(EndpointConfig(service="none", error_share=1)) as endpoint:
        raised = invoke(endpoint)
        assert endpoint.arrivals()["status"] == [200]
    assert (raised["StatusCode"], raised["FunctionError"]) == (200, "Unhandled")
    assert json.loads(raised["Payload"].read())["errorType"] == "RuntimeError"


def test_lambdas_own_errors(instant: RunningEndpoint) -> None:
    with pytest.raises(ClientError, match=r"InvalidRequestContentException.*Could not parse"):
        invoke(instant, b"{")
    with (
        start(EndpointConfig(service="none", error_share=1, error_status=429)) as endpoint,
        pytest.raises(ClientError, match=r"TooManyRequestsException.*Rate Exceeded"),
    ):
        invoke(endpoint)


def test_a_slash_that_is_escaped_parts_no_path(instant: RunningEndpoint) -> None:
    for model in ("a/b", "a%2fb"):
        assert bedrock(instant).converse(modelId=model, messages=[HELLO])["usage"]
    with pytest.raises(ClientError, match="404"):
        bedrock(instant).converse(modelId="", messages=[HELLO])
