"""The embedded endpoint's faults within an answer that its status calls a success: a reason to end, and gzip."""

from __future__ import annotations

import gzip
import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.clients import OpenAIClient
from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.http.messages import Answer, Request
from inference_benchmarker.embedded.protocols.bedrock import ConverseDialect, ConverseStreamDialect
from inference_benchmarker.embedded.protocols.generate_stream import GenerateStreamDialect
from inference_benchmarker.embedded.protocols.responses import ResponsesDialect
from inference_benchmarker.embedded.running import RunningEndpoint, start
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.response import FinishReasonError, Response
from tests.boto3_runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.process

CHAT = {"model": "m", "messages": [{"role": "user", "content": "two words"}], "max_tokens": 3}
TEXT = {"model": "m", "prompt": "two words", "max_tokens": 3}
GENERATION = {"inputs": "a", "parameters": {"details": True}}


@pytest.fixture(scope="module")
def aborting() -> Iterator[RunningEndpoint]:
    """One that gives every answer up."""
    with start(EndpointConfig(service="none", tokens=4, finish_reason="abort")) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def compressing() -> Iterator[RunningEndpoint]:
    with start(EndpointConfig(service="none", tokens=4, gzip=True)) as endpoint:
        yield endpoint


@pytest.mark.parametrize(
    ("call", "payload"),
    [("chat", CHAT), ("stream_chat", CHAT), ("completions", TEXT), ("stream_completions", TEXT)],
)
def test_every_answer_ends_for_the_reason_that_was_configured(
    call: str, payload: dict[str, Any], aborting: RunningEndpoint
) -> None:
    with pytest.raises(FinishReasonError, match="abort"):
        list(getattr(OpenAIClient(f"{aborting.url}/v1"), call)(payload))


@pytest.mark.parametrize("asked", [CHAT, GENERATION])
def test_behind_sagemaker_too(asked: dict[str, Any], aborting: RunningEndpoint) -> None:
    body = json.dumps(asked).encode()
    stored = runtime(aborting).invoke_endpoint(EndpointName="e", Body=body)["Body"].read()
    parts = runtime(aborting).invoke_endpoint_with_response_stream(EndpointName="e", Body=body)["Body"]
    streamed = b"".join(part["PayloadPart"]["Bytes"] for part in parts)
    assert (b'"finish_reason":"abort"' in stored, b'"finish_reason":"abort"' in streamed) == (True, True)


RESPONSE: dict[str, Any] = {"model": "m", "input": "two words"}


def post(asked: dict[str, Any]) -> Request:
    return Request("POST", "/v2/models/m/generate_stream", "", "HTTP/1.1", {}, body=json.dumps(asked).encode())


@pytest.mark.parametrize(
    ("reason", "status", "expected"),
    [
        ("abort", "cancelled", None),
        ("error", "failed", None),
        ("content_filter", "incomplete", "content_filter"),
        ("length", "incomplete", "max_output_tokens"),
        ("stop", "completed", None),
    ],
)
def test_a_response_ends_with_the_status_of_the_reason(reason: str, status: str, expected: str | None) -> None:
    dialect = ResponsesDialect(2, reason)
    whole = dialect.reply(post(RESPONSE), 1)
    assert isinstance(whole, Answer)
    streamed = dialect.reply(post(RESPONSE | {"stream": True}), 1)
    assert not isinstance(streamed, Answer)
    kind, content = streamed.events(1)[-1].decode().split("\n")[:2]
    response = json.loads(content.removeprefix("data: "))["response"]
    assert kind == f"event: response.{status}"
    for found in (json.loads(whole.body), response):
        assert (found["status"], (found["incomplete_details"] or {}).get("reason")) == (status, expected)
        assert (found["error"] is None) == (status != "failed")


@pytest.mark.parametrize(
    ("parameters", "reasons"), [({}, [None, None]), ({"return_finish_reason": True}, ["None", "length"])]
)
def test_tritons_stream_tells_its_reason_where_it_is_asked_or_configured(
    parameters: dict[str, Any], reasons: list[str | None]
) -> None:
    asked = {"text_input": "a", "parameters": {"max_tokens": 2, **parameters}}
    assert generated(None, asked) == reasons
    assert generated("abort", asked) == ["None", "abort"]


def generated(reason: str | None, asked: dict[str, Any]) -> list[str | None]:
    """The reasons in the events of a generated stream."""
    stream = GenerateStreamDialect(2, reason).reply(post(asked), 1)
    events = [event for piece in range(2) for event in stream.events(piece)]
    return [json.loads(event.removeprefix(b"data: ")).get("finish_reason") for event in events]


def test_a_conversation_of_bedrock_stops_for_the_reason() -> None:
    request = post({"messages": [{"role": "user", "content": [{"text": "two words"}]}]})
    whole, streamed = (dialect(2, "abort").reply(request, 1) for dialect in (ConverseDialect, ConverseStreamDialect))
    assert isinstance(whole, Answer)
    assert not isinstance(streamed, Answer)
    assert json.loads(whole.body)["stopReason"] == "abort"
    assert b'{"stopReason":"abort"}' in b"".join(streamed.events(1))


@pytest.mark.parametrize("reason", ["", "a b", '"'])
def test_a_reason_is_a_word(reason: str) -> None:
    with pytest.raises(BenchmarkError, match=r"finish_reason is .*: it must be a word"):
        EndpointConfig(finish_reason=reason)


def test_answers_are_compressed_and_a_streams_pieces_can_be_read_one_by_one(compressing: RunningEndpoint) -> None:
    client = OpenAIClient(f"{compressing.url}/v1")
    assert client.chat(CHAT).content["choices"][0]["message"]["content"] == "0 1 2"
    *pieces, usage = client.stream_chat(CHAT)
    assert (pieces, usage) == (["0", " 1", " 2"], Response(2, 3, model="m", finish_reason="length"))


def test_a_stream_that_breaks_is_a_whole_gzip_file() -> None:
    with start(EndpointConfig(service="none", tokens=4, gzip=True, break_share=1)) as endpoint:
        connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
        connection.request("POST", "/v1/chat/completions", json.dumps({**CHAT, "stream": True}))
        response = connection.getresponse()
        reported = gzip.decompress(response.read())
        connection.close()
    assert response.headers["Content-Encoding"] == "gzip"
    assert (reported.count(b"data: "), b"as configured" in reported) == (2, True)
