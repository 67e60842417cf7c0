"""The examples for chats behind SageMaker: what they make of every answer that a container may give."""

from __future__ import annotations

import json
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from inference_benchmarker import Response
from inference_benchmarker.embedded.aws.boto3_settings import isolated
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.endpoint.factories_file import load
from inference_benchmarker.records.error_key import error_key
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE, STREAM = (f"sagemakerai_realtime/factories_llm_chat{kind}.py" for kind in ("", "_stream"))
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
OK = ["stop", "length", "tool_calls", "function_call", "content_filter", "eos_token"]
GIVEN_UP = ["abort", "error"]
CALL = [{"index": 0, "function": {"name": "look_up", "arguments": "{}"}}]
ERROR = {"error": {"message": "out of memory", "code": 500}}


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    aim(monkeypatch, "http://127.0.0.1:9")


def aim(patch: pytest.MonkeyPatch, url: str) -> None:
    for name, value in isolated({}, url).items():
        patch.setenv(name, value)


def given(patch: pytest.MonkeyPatch, name: str, call: str, body: object) -> Any:
    """What an example's ``invoke`` makes of an answer."""
    client = SimpleNamespace(**{call: lambda **_: {"Body": body}})
    patch.setattr(boto3, "client", lambda *_, **__: client)
    return load(FACTORIES / name, "demo").invoke(b"{}")


def whole(patch: pytest.MonkeyPatch, body: object) -> Any:
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    return given(patch, WHOLE, "invoke_endpoint", BytesIO(said))


def read(patch: pytest.MonkeyPatch, *parts: bytes) -> Iterator[Any]:
    body = [{"PayloadPart": {"Bytes": part}} for part in parts]
    pieces: Iterator[Any] = given(patch, STREAM, "invoke_endpoint_with_response_stream", body)
    return pieces


def completion(finish_reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {"object": "chat.completion", "choices": [choice], "usage": USAGE}


def event(finish_reason: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: %b\n\n" % json.dumps({"choices": [choice]}).encode()


def data(content: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(content).encode()


LAST = data({"choices": [], "usage": USAGE}) + b"data: [DONE]\n\n"
STREAMED = b": still here\n\n" + event(role="assistant", content="") + event(content="Dé") + event(content="ep")
WELL = STREAMED + event("stop") + LAST
TOLD = ["Dé", "ep", Response(tokens_in=5, tokens_out=2), Response(finish_reason="stop")]


def test_what_the_server_counted_is_what_the_examples_count(monkeypatch: pytest.MonkeyPatch) -> None:
    with start(EndpointConfig(service="none")) as endpoint:
        aim(monkeypatch, endpoint.url)
        chat, stream = (load(FACTORIES / name, "demo") for name in (WHOLE, STREAM))
        assert chat.build is not None
        assert stream.build is not None
        payload = chat.build()
        words = len(json.loads(payload)["messages"][0]["content"].split())
        answered: Any = chat.invoke(payload)
        assert (answered.tokens_in, answered.tokens_out) == (words, 64)
        answered = stream.invoke(stream.build())
        *tokens, usage, reason = answered
        assert (len(tokens), usage) == (64, Response(tokens_in=words, tokens_out=64))
        assert reason == Response(finish_reason="length")
        assert len(endpoint.arrivals()["route"]) == 2


def test_a_stream_is_read_however_its_parts_cut_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lines_of_json = WELL.replace(b"data: {", b"{").replace(b"\n\n", b"\n")
    for stream in (WELL, WELL.replace(b"\n", b"\r\n"), lines_of_json, WELL.rstrip(b"\n")):
        assert [*read(monkeypatch, stream)] == TOLD
        assert [*read(monkeypatch, *(bytes([byte]) for byte in stream))] == TOLD
    for cut in range(0, len(WELL), 7):
        assert [*read(monkeypatch, WELL[:cut], b"", WELL[cut:])] == TOLD


@pytest.mark.parametrize("reason", OK)
def test_an_answer_may_end_for_any_reason_of_its_own(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert whole(monkeypatch, completion(reason, content="a")).finish_reason == reason
    assert [*read(monkeypatch, STREAMED, event(reason), LAST)] == [*TOLD[:3], Response(finish_reason=reason)]


@pytest.mark.parametrize("reason", GIVEN_UP)
def test_an_answer_that_the_server_gave_up_has_failed(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for ask in (
        lambda: whole(monkeypatch, completion(reason, content="a")),
        lambda: [*read(monkeypatch, STREAMED, event(reason), LAST)],
    ):
        with pytest.raises(Exception, match=f"finish_reason '{reason}'") as caught:
            ask()
        assert error_key(caught.value) == f"FinishReasonError {reason}"


@pytest.mark.parametrize("name", ["content", "reasoning_content", "reasoning", "refusal"])
def test_all_that_the_model_generated_is_an_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert whole(monkeypatch, completion(**{name: "a"})).tokens_in == 5
    assert [*read(monkeypatch, event(**{name: "a"}), event("stop"))] == ["a", Response(finish_reason="stop")]


def test_a_call_of_a_tool_is_an_answer_and_nothing_is_one_where_it_was_filtered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert whole(monkeypatch, completion("tool_calls", content=None, tool_calls=CALL)).tokens_out == 2
    assert len([*read(monkeypatch, event(tool_calls=CALL), event("tool_calls"))]) == 2
    assert whole(monkeypatch, completion("content_filter", content=None)).tokens_out == 2
    assert [*read(monkeypatch, event("content_filter"))] == [Response(finish_reason="content_filter")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "expected a chat completion, but got: $"),
        (b"<html>", "got: <html>"),
        ({}, "got: {}"),
        ([], r"got: \[\]"),
        ({"predictions": [0.5]}, r"predictions.*0\.5"),
        ({"generated_text": "a"}, "generated_text"),
        ({"choices": []}, "got:.*choices"),
        ({"choices": [{"text": "a"}]}, "got:.*text"),
        (ERROR, "out of memory"),
        (completion(content=""), 'nothing in it:.*"content": ""'),
        (completion("length", content=None), 'nothing in it:.*"length"'),
        (WELL, "got: : still here"),
        ({**completion(content="a"), "usage": [1]}, r'got:.*"usage": \[1\]'),
        ({**completion(content="a"), "usage": {"completion_tokens": "x"}}, 'got:.*"completion_tokens": "x"'),
    ],
)
def test_an_answer_without_a_chat_in_it_has_failed(
    body: object, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Exception, match=f"(?s){expected}"):
        whole(monkeypatch, body)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], "ended after 0 pieces, without a finish_reason"),
        ([b"data: [DONE]\n\n"], "ended after 0 pieces"),
        ([STREAMED], "ended after 2 pieces, without a finish_reason"),
        ([STREAMED, b'data: {"choices'], 'got: {"choices$'),
        ([STREAMED, data(ERROR)], "out of memory"),
        ([event(content=""), event("stop"), LAST], "no token in it: its finish_reason is stop"),
        ([json.dumps(completion(content="a")).encode()], "expected an event of a chat, but got:.*chat.completion"),
        ([b'{"predictions": [0.5]}'], "predictions"),
        ([b"0", b" 1", b" 2"], "got: 0 1 2"),
        ([data({"token": {"text": "a"}})], "got:.*token"),
        ([data([])], r"got: \[\]"),
        ([data({"choices": [], "usage": [1]})], r'got:.*"usage": \[1\]'),
        ([data({"choices": [], "usage": {"completion_tokens": "x"}})], 'got:.*"completion_tokens": "x"'),
    ],
)
def test_a_stream_without_a_chat_in_it_has_failed(
    parts: list[bytes], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Exception, match=expected):
        list(read(monkeypatch, *parts))
