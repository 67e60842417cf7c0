"""The embedded endpoint as a container with OpenAI's API behind SageMaker, asked by unmodified boto3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import RunningEndpoint, start
from tests.boto3_runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.process

QUESTION = {"role": "user", "content": "two words"}
USAGE = {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    """One whose service takes no time."""
    with start(EndpointConfig(service="none", tokens=4)) as endpoint:
        yield endpoint


def body(**more: Any) -> bytes:
    return json.dumps({"messages": [QUESTION], **more}).encode()


def whole(endpoint: RunningEndpoint, asked: bytes) -> tuple[str, bytes]:
    answer = runtime(endpoint).invoke_endpoint(EndpointName="e", ContentType="application/json", Body=asked)
    return answer["ContentType"], answer["Body"].read()


def parts(endpoint: RunningEndpoint, asked: bytes) -> tuple[str, list[bytes]]:
    answer = runtime(endpoint).invoke_endpoint_with_response_stream(EndpointName="e", Body=asked)
    return answer["ContentType"], [part["PayloadPart"]["Bytes"] for part in answer["Body"]]


def events(stream: bytes) -> list[Any]:
    *data, last = (event.removeprefix(b"data: ") for event in stream.split(b"\n\n")[:-1])
    assert last == b"[DONE]"
    return [json.loads(each) for each in data]


def test_a_chat_in_one_piece(endpoint: RunningEndpoint) -> None:
    kind, reported = whole(endpoint, body(max_tokens=3))
    answer = json.loads(reported)
    assert kind == "application/json"
    assert (answer["object"], answer["usage"]) == ("chat.completion", USAGE)
    (choice,) = answer["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("0 1 2", "length")
    assert json.loads(whole(endpoint, body())[1])["choices"][0]["finish_reason"] == "stop"


def test_a_chat_as_a_stream_comes_in_parts_that_know_nothing_of_lines(endpoint: RunningEndpoint) -> None:
    asked = body(max_tokens=3, stream=True, stream_options={"include_usage": True})
    kind, found = parts(endpoint, asked)
    assert kind == "text/event-stream"
    assert not any(part.endswith(b"\n") for part in found[:-1:2])
    *tokens, finish, usage = events(b"".join(found))
    assert [event["choices"][0]["delta"]["content"] for event in tokens] == ["0", " 1", " 2"]
    assert finish["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "length"}
    assert (usage["choices"], usage["usage"]) == ([], USAGE)
    assert len(events(b"".join(parts(endpoint, body(max_tokens=3, stream=True))[1]))) == 4


def test_the_body_says_whether_the_container_streams_and_the_call_whether_sagemaker_does(
    endpoint: RunningEndpoint,
) -> None:
    kind, stream = whole(endpoint, body(stream=True))
    assert (kind, len(events(stream))) == ("text/event-stream", 5)
    kind, found = parts(endpoint, body(max_tokens=3))
    assert (kind, json.loads(b"".join(found))["usage"]) == ("application/json", USAGE)


@pytest.mark.parametrize("wrong", [{"messages": []}, {"messages": ["a"]}, {"max_tokens": 0}])
def test_a_wrong_chat_is_the_models_error(endpoint: RunningEndpoint, wrong: dict[str, Any]) -> None:
    for call in ("invoke_endpoint", "invoke_endpoint_with_response_stream"):
        with pytest.raises(ClientError, match=r"messages|max_tokens") as caught:
            getattr(runtime(endpoint), call)(EndpointName="e", Body=body(**wrong))
        error: Any = caught.value.response
        assert (error["Error"]["Code"], error["OriginalStatusCode"]) == ("ModelError", 422)


@pytest.mark.parametrize("asked", [b'"messages"', b'{"messages": [}', b'["messages"]'])
def test_other_requests_ask_for_no_chat(endpoint: RunningEndpoint, asked: bytes) -> None:
    assert json.loads(whole(endpoint, asked)[1]) == {"predictions": [0.5]}
