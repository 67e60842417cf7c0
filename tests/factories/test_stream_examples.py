"""The examples for streams over HTTP, tensors and reranking: each server's words, and what is a failure to them."""

from __future__ import annotations

import json
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import Response
from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED
from inference_benchmarker.embedded.running import EndpointConfig, RunningEndpoint, start
from inference_benchmarker.engine.endpoint.factories_file import load
from inference_benchmarker.records.error_key import error_key
from tests.scripted_server import ScriptedServer, answer, chunked_head, chunks
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HTTP, GENERATE = "http/factories_http_stream", "kserve_v2/factories_generate_stream"
RESPONSES, RERANK = "openai_compatible/factories_responses_stream", "openai_compatible/factories_rerank"
TENSORS = "kserve_v2/factories_http"
TRITON, TEI = {"TRITON = False": "TRITON = True"}, {"TEI = False": "TEI = True"}
ND_JSON = {'"text/event-stream"}': '"application/x-ndjson"}', 'LAST = "[DONE]"': "LAST = None"}
LINES = {"PLAIN_LINES = False": "PLAIN_LINES = True"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    with start(EndpointConfig(service="none")) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def breaking() -> Iterator[RunningEndpoint]:
    """One whose streams break in their middle."""
    with start(EndpointConfig(service="none", break_share=1)) as endpoint:
        yield endpoint


class Examples:
    """Asks servers as an example does whose constants were edited."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self._patch = patch
        self._folder = folder

    def ask(self, name: str, url: str, edits: dict[str, str] | None = None) -> Iterator[Any]:
        """All that ``invoke`` yields or returns."""
        source = (FACTORIES / f"{name}.py").read_text()
        for old, new in (edits or {}).items():
            assert source.count(old) == 1
            source = source.replace(old, new)
        copy = self._folder / "my_endpoint.py"
        copy.write_text(source)
        self._patch.setenv("BENCHMARK_DEMO_URL", url)
        example = load(copy)
        answered = example.invoke(example.build() if example.build else (example.payloads or [])[0])
        yield from answered if isinstance(answered, GeneratorType) else [answered]

    def responses(self, name: str, body: bytes, edits: dict[str, str] | None = None) -> list[Any]:
        """What it makes of these bytes, whole and cut into single ones."""
        whole = [answer(body, Content_Type="text/event-stream")]
        cut = [chunked_head() + chunks(*(bytes([byte]) for byte in body))]
        with ScriptedServer([whole]) as server:
            found = [*self.ask(name, server.url, edits)]
        if name != RERANK:
            with ScriptedServer([cut]) as server:
                assert [*self.ask(name, server.url, edits)] == found
        return found

    def fails(self, name: str, body: bytes, edits: dict[str, str] | None = None) -> BaseException:
        """The exception that these bytes raise."""
        with (
            ScriptedServer([[answer(body, Content_Type="text/event-stream")]]) as server,
            pytest.raises(Exception) as caught,  # noqa: PT011 - who calls looks at it
        ):
            list(self.ask(name, server.url, edits))
        return caught.value


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Examples:
    return Examples(monkeypatch, tmp_path)


def sse(*events: object) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


def delta(kind: str = "output_text", text: object = "a") -> dict[str, object]:
    return {"type": f"response.{kind}.delta", "delta": text}


def last(status: str, reason: str | None = None, **response: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 2}
    details = {"reason": reason} if reason else None
    fields = {"model": "m", "status": status, "incomplete_details": details, "usage": usage, **response}
    return {"type": f"response.{status}", "response": fields}


@pytest.mark.parametrize(
    ("name", "edits", "route"),
    [
        (HTTP, ND_JSON, "/invocations"),
        (HTTP, LINES | ND_JSON, "/invocations"),
        (GENERATE, TRITON, "/v2/models/{name}/generate_stream"),
        (RERANK, TEI, "/rerank"),
    ],
)
def test_its_other_ways_reach_the_embedded_endpoint_too(
    name: str, edits: dict[str, str], route: str, examples: Examples, endpoint: RunningEndpoint
) -> None:
    found = [*examples.ask(name, endpoint.url, edits)]
    assert endpoint.arrivals()["route"][-1] == route
    texts = [piece for piece in found if not isinstance(piece, Response)]
    assert len(texts) == {HTTP: 20, GENERATE: 64, RERANK: 0}[name]


@pytest.mark.parametrize(
    ("name", "edits", "key"),
    [
        (HTTP, {}, "StreamError"),
        (HTTP, ND_JSON, "StreamError"),
        (GENERATE, {}, "StreamError"),
        (GENERATE, TRITON, "StreamError"),
        (RESPONSES, {}, "ResponsesError server_error"),
    ],
)
def test_a_stream_that_tells_of_an_error_has_failed(
    name: str, edits: dict[str, str], key: str, examples: Examples, breaking: RunningEndpoint
) -> None:
    pieces = examples.ask(name, breaking.url, edits)
    assert next(pieces) == "0"
    with pytest.raises(Exception, match=FAILED_AS_CONFIGURED) as caught:
        list(pieces)
    assert error_key(caught.value) == key


TEXTS = sse({"text": "a"}, {"text": ""}, {"text": "é"})
OUTPUT = {"outputs": [{"data": ["a"]}]}


def ranking(score: Any = 1, usage: Any = None) -> bytes:
    return json.dumps({"results": [{"relevance_score": score}] * 8, "usage": usage}).encode()


COUNTED = {"text_output": "a", "num_output_tokens": 3, "finish_reason": "None"}


@pytest.mark.parametrize(
    ("name", "edits", "body", "expected"),
    [
        (HTTP, {}, b": hello\n\n" + TEXTS + b"data: [DONE]\n\n", ["a", "é"]),
        (HTTP, ND_JSON, b'{"text": "a"}\r\n{"text": "b"}', ["a", "b"]),
        (HTTP, LINES, b"a b\n\n  \nc\r\nd", ["a b", "c", "d"]),
        (
            GENERATE,
            {},
            sse(OUTPUT, {"outputs": [{"data": [""]}]}, {"outputs": [{"data": "bc"}]}),
            ["a", "bc", Response()],
        ),
        (GENERATE, TRITON, sse({"text_output": "a"}, {"text_output": ""}), ["a", Response()]),
        (
            GENERATE,
            TRITON,
            sse(COUNTED, {**COUNTED, "text_output": "", "finish_reason": "stop"}),
            ["a", Response(tokens_out=6, finish_reason="stop")],
        ),
        (
            RESPONSES,
            {},
            sse({"type": "response.created"}, delta("reasoning_text"), delta(), delta(text=""), last("completed")),
            ["a", "a", Response(5, 2, model="m", finish_reason="completed")],
        ),
        (
            RESPONSES,
            {},
            sse(delta("function_call_arguments"), last("incomplete", "max_output_tokens")) + b"data: [DONE]\n\n",
            ["a", Response(5, 2, model="m", finish_reason="max_output_tokens")],
        ),
        (
            RESPONSES,
            {},
            sse(last("incomplete", "content_filter", usage=None)),
            [Response(model="m", finish_reason="content_filter")],
        ),
    ],
)
def test_a_stream_is_read_however_it_is_cut(
    name: str, edits: dict[str, str], body: bytes, expected: list[Any], examples: Examples
) -> None:
    assert examples.responses(name, body, edits) == expected


@pytest.mark.parametrize(
    ("name", "edits", "body", "expected"),
    [
        (HTTP, {}, b"", "expected events, but received: "),
        (HTTP, {}, b"<html>", "expected events, but received: <html>"),
        (HTTP, {}, b'{"predictions": [0.5]}', 'but got: {"predictions": [0.5]}'),
        (HTTP, {}, b'event: error\ndata: {"message": "no memory"}\n\n', 'but got: {"message": "no memory"}'),
        (HTTP, {}, TEXTS, "the stream ended after 2 texts, without [DONE]"),
        (HTTP, {}, b"data: [DONE]\n\n", "the stream had no text in it"),
        (HTTP, LINES, b"\n \n", "the stream had no text in it"),
        (GENERATE, {}, b"null", "expected events, but received: null"),
        (GENERATE, {}, sse({"outputs": []}), 'expected outputs, but got: {"outputs": []}'),
        (GENERATE, {}, sse({"text_output": "a"}), 'expected outputs, but got: {"text_output": "a"}'),
        (GENERATE, TRITON, sse(OUTPUT), 'expected text_output, but got: {"outputs": [{"data": ["a"]}]}'),
        (GENERATE, TRITON, sse({"text_output": "a"}, {"error": "no memory"}), 'but got: {"error": "no memory"}'),
        (GENERATE, TRITON, sse({"text_output": ""}), "the stream had no text in it"),
        (GENERATE, TRITON, sse({**COUNTED, "finish_reason": "abort"}), "finish_reason 'abort'"),
        (RESPONSES, {}, b"", "expected events, but received: "),
        (RESPONSES, {}, b'{"object": "response"}', 'but got: {"object": "response"}'),
        (RESPONSES, {}, sse([]), "but got: []"),
        (RESPONSES, {}, sse(delta()), "the stream ended after 1 pieces, without its last event"),
        (RESPONSES, {}, sse(last("completed", usage={})), "the response had nothing in it"),
        (TENSORS, {}, b"", "expected outputs, but got: "),
        (TENSORS, {}, b'{"model_name": "m"}', 'expected outputs, but got: {"model_name": "m"}'),
        (RERANK, {}, b"", "expected scores, but got: "),
        (RERANK, {}, b"[]", "expected scores, but got: []"),
        (RERANK, TEI, b'{"error": "no memory"}', 'expected scores, but got: {"error": "no memory"}'),
        (RERANK, TEI, b"[]", "expected 8 scores, but got 0: []"),
        (RERANK, {}, b'{"results": [{"relevance_score": 1}]}', "expected 8 scores, but got 1"),
        (HTTP, {}, sse({"text": {"a": 1}}), 'but got: {"text": {"a": 1}}'),
        (HTTP, {}, sse({"text": 5}), 'but got: {"text": 5}'),
        (HTTP, LINES, b"\n<!DOCTYPE html>\n<html>", "expected lines, but got a page: <!DOCTYPE html>"),
        (GENERATE, {}, sse({"outputs": [{"data": {"a": 1}}]}), 'but got: {"outputs": [{"data": {"a": 1}}]}'),
        (GENERATE, {}, sse({"outputs": [{"data": [None]}]}), 'but got: {"outputs": [{"data": [null]}]}'),
        (GENERATE, {}, sse({**OUTPUT, "num_output_tokens": "x"}), '"num_output_tokens": "x"'),
        (GENERATE, TRITON, sse({**COUNTED, "finish_reason": "abort"}, {"text_output": ""}), "finish_reason 'abort'"),
        (RESPONSES, {}, sse({"type": 5}), 'but got: {"type": 5}'),
        (RESPONSES, {}, sse({"type": "response.completed", "response": [1]}), '"response": [1]'),
        (RESPONSES, {}, sse(delta(), last("completed", usage=[1])), '"usage": [1]'),
        (RESPONSES, {}, sse(delta(), last("completed", usage={"output_tokens": "x"})), '"output_tokens": "x"'),
        (RESPONSES, {}, sse(last("failed", error="no memory")), "no memory"),
        (RERANK, {}, ranking(score=None), "expected scores, but got: "),
        (RERANK, {}, ranking(score="good"), "expected scores, but got: "),
        (RERANK, {}, ranking(usage=[1]), "expected scores, but got: "),
    ],
)
def test_an_answer_without_what_was_asked_for_has_failed(
    name: str, edits: dict[str, str], body: bytes, expected: str, examples: Examples
) -> None:
    assert expected in str(examples.fails(name, body, edits))


@pytest.mark.parametrize(
    ("end", "key"),
    [
        (last("failed", error={"code": "rate_limit_exceeded", "message": "slow down"}), "rate_limit_exceeded"),
        (last("failed", error=None), "failed"),
        (last("cancelled"), "cancelled"),
        ({"type": "error", "code": "server_error", "message": "no memory"}, "server_error"),
        ({"type": "error", "code": None, "message": "no memory"}, "error"),
    ],
)
def test_a_response_that_did_not_come_to_its_end_is_counted_by_the_servers_word(
    end: dict[str, Any], key: str, examples: Examples
) -> None:
    assert error_key(examples.fails(RESPONSES, sse(delta(), end))) == f"ResponsesError {key}"


def test_a_response_whose_tokens_are_reported_and_not_shown_is_an_answer(examples: Examples) -> None:
    assert examples.responses(RESPONSES, sse(last("completed"))) == [
        Response(5, 2, model="m", finish_reason="completed")
    ]


@pytest.mark.parametrize(
    ("usage", "tokens"), [({"prompt_tokens": 7, "total_tokens": 8}, 7), ({"total_tokens": 8}, 8), (None, None)]
)
def test_a_ranking_has_the_tokens_that_the_server_tells(
    usage: dict[str, int] | None, tokens: int | None, examples: Examples
) -> None:
    body = json.dumps({"results": [{"index": 0, "relevance_score": 0.5}] * 8, "usage": usage}).encode()
    assert examples.responses(RERANK, body) == [Response(tokens_in=tokens, bytes=len(body))]
