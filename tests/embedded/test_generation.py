"""The embedded endpoint as an LLM container behind SageMaker, asked by unmodified boto3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.protocols.generation import Generation
from inference_benchmarker.embedded.running import RunningEndpoint, start
from tests.boto3_runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    """One whose service takes no time."""
    with start(EndpointConfig(service="none", tokens=4)) as endpoint:
        yield endpoint


def body(**parameters: Any) -> bytes:
    return json.dumps({"inputs": "two words", "parameters": parameters}).encode()


def whole(endpoint: RunningEndpoint, asked: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        runtime(endpoint).invoke_endpoint(EndpointName="e", Body=asked)["Body"].read(),
    )
    return answer


def test_a_text_in_one_piece(endpoint: RunningEndpoint) -> None:
    assert whole(endpoint, body()) == {"generated_text": "0 1 2 3"}
    details = {"finish_reason": "length", "generated_tokens": 2, "inputs": "two words"}
    assert whole(endpoint, body(max_new_tokens=2, details=True)) == {"generated_text": "0 1", "details": details}


def test_a_text_as_a_stream_has_a_line_a_token_and_the_whole_in_the_last(endpoint: RunningEndpoint) -> None:
    answer = runtime(endpoint).invoke_endpoint_with_response_stream(EndpointName="e", Body=body(max_new_tokens=3))
    assert answer["ContentType"] == "application/jsonlines"
    parts = [part["PayloadPart"]["Bytes"] for part in answer["Body"]]
    assert all(part.endswith(b"\n") for part in parts)
    *first, last = map(json.loads, parts)
    assert [line["token"]["text"] for line in (*first, last)] == ["0", " 1", " 2"]
    assert all(list(line) == ["token"] for line in first)
    assert (last["generated_text"], last["details"]["generated_tokens"]) == ("0 1 2", 3)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (body(max_new_tokens=0), "max_new_tokens` must be from 1 to 1000000. Given: 0"),
        (body(max_new_tokens=True), "Given: True"),
        (b'{"inputs": "", "parameters": {}}', "`inputs` must be a string"),
    ],
)
def test_a_wrong_request_is_the_models_error(endpoint: RunningEndpoint, asked: bytes, expected: str) -> None:
    for call in ("invoke_endpoint", "invoke_endpoint_with_response_stream"):
        with pytest.raises(ClientError) as caught:
            getattr(runtime(endpoint), call)(EndpointName="e", Body=asked)
        error: Any = caught.value.response
        assert (error["Error"]["Code"], error["OriginalStatusCode"]) == ("ModelError", 422)
        assert expected in error["Error"]["Message"]


@pytest.mark.parametrize("asked", [b"", b'"parameters"', b'{"parameters": 1}', b'{"parameters": {}', b"1,2,3"])
def test_other_requests_ask_for_no_text(asked: bytes) -> None:
    assert Generation.asked_for(asked, 4) is None
