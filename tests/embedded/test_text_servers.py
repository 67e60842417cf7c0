"""The embedded endpoint's texts in other words: responses, generate_stream, plain streams; and its reranking."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import openai
import pytest

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED, EndpointConfig
from inference_benchmarker.embedded.running import RunningEndpoint, start

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.process

GENERATE = "/v2/models/m/generate_stream"
PROMPT = {"name": "prompt", "shape": [1], "datatype": "BYTES", "data": ["two words"]}
TRITON, MLSERVER = {"text_input": "two words"}, {"inputs": [PROMPT]}


@pytest.fixture(scope="module")
def instant() -> Iterator[RunningEndpoint]:
    """An endpoint whose service takes no time."""
    with start(EndpointConfig(service="none", tokens=4)) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def breaking() -> Iterator[RunningEndpoint]:
    """One whose streams break in their middle."""
    with start(EndpointConfig(service="none", tokens=4, break_share=1)) as endpoint:
        yield endpoint


def ask(endpoint: RunningEndpoint, path: str, asked: object, accept: str = "*/*") -> tuple[int, str, str]:
    """Status, content type and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request("POST", path, json.dumps(asked), {"Accept": accept})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.headers["Content-Type"], text


def data(stream: str) -> list[Any]:
    events = stream.split("\n\n")
    assert events.pop() == ""
    return [json.loads(event.removeprefix("data: ")) for event in events]


def of(endpoint: RunningEndpoint) -> Any:
    return openai.OpenAI(base_url=f"{endpoint.url}/v1", api_key="none", max_retries=0).responses


@pytest.mark.parametrize(
    ("limit", "status", "reason"), [({}, "completed", None), ({"max_output_tokens": 3}, "incomplete", "length")]
)
def test_a_response_in_one_piece(
    instant: RunningEndpoint, limit: dict[str, Any], status: str, reason: str | None
) -> None:
    given = [{"role": "user", "content": [{"type": "input_text", "text": "two words"}]}]
    for question in ("two words", given):
        whole = of(instant).create(model="m", input=question, **limit)
        tokens = 3 if reason else 4
        assert (whole.status, whole.output_text) == (status, "0 1 2 3"[: 2 * tokens - 1])
        assert (whole.usage.input_tokens, whole.usage.output_tokens) == (2, tokens)
        assert (whole.incomplete_details is None) == (reason is None)


def test_a_response_as_a_stream_numbers_its_events(instant: RunningEndpoint) -> None:
    events = list(of(instant).create(model="m", input="two words", stream=True))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        f"response.{kind}" for kind in ("created", "in_progress", "output_item.added", "content_part.added")
    ]
    assert kinds[4:8] == ["response.output_text.delta"] * 4
    done = ("output_text.done", "content_part.done", "output_item.done", "completed")
    assert kinds[8:] == [f"response.{kind}" for kind in done]
    assert [event.sequence_number for event in events] == list(range(12))
    assert "".join(event.delta for event in events[4:8]) == "0 1 2 3"
    assert events[-1].response.usage.total_tokens == 6
    assert (
        list(of(instant).create(model="m", input="a", stream=True, max_output_tokens=2))[-1].type
        == "response.incomplete"
    )


def test_a_response_that_breaks_has_failed(breaking: RunningEndpoint) -> None:
    events = list(of(breaking).create(model="m", input="two words", stream=True))
    assert [event.type for event in events[4:]] == ["response.output_text.delta"] * 2 + ["response.failed"]
    assert (events[-1].response.error.code, events[-1].response.error.message) == ("server_error", FAILED_AS_CONFIGURED)


@pytest.mark.parametrize("wrong", [{}, {"input": ""}, {"input": []}, {"input": ["a"]}, {"max_output_tokens": 0}])
def test_a_response_to_nothing_is_refused(instant: RunningEndpoint, wrong: dict[str, Any]) -> None:
    asked = {"input": "a", **wrong} if "max_output_tokens" in wrong else wrong
    status, _, reported = ask(instant, "/v1/responses", asked)
    assert status == 400
    assert json.loads(reported)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", [GENERATE, "/v2/models/m/versions/2/generate_stream"])
@pytest.mark.parametrize("asked", [TRITON, MLSERVER])
def test_a_generated_stream_is_in_the_words_of_the_server_that_was_asked(
    instant: RunningEndpoint, path: str, asked: dict[str, Any]
) -> None:
    status, kind, reported = ask(instant, path, {**asked, "parameters": {"max_tokens": 2}})
    assert (status, kind) == (200, "text/event-stream; charset=utf-8")
    model = {"model_name": "m", "model_version": "1"}
    if asked is TRITON:
        assert data(reported) == [{**model, "text_output": text} for text in ("0", " 1")]
    else:
        outputs = [[{"name": "output", "shape": [1, 1], "datatype": "BYTES", "data": [text]}] for text in ("0", " 1")]
        assert data(reported) == [{**model, "outputs": each} for each in outputs]
    assert len(data(ask(instant, path, asked)[2])) == 4


def test_a_generated_stream_tells_its_error_within(breaking: RunningEndpoint) -> None:
    *tokens, error = data(ask(breaking, GENERATE, TRITON)[2])
    assert (len(tokens), error) == (2, {"error": FAILED_AS_CONFIGURED})


@pytest.mark.parametrize(
    "wrong", [{}, {"text_input": 1}, {"inputs": []}, {"inputs": [1]}, {**TRITON, "parameters": {"max_tokens": 0}}]
)
def test_a_generated_stream_of_nothing_is_refused(instant: RunningEndpoint, wrong: dict[str, Any]) -> None:
    status, _, reported = ask(instant, GENERATE, wrong)
    assert status == 400
    assert list(json.loads(reported)) == ["error"]


def test_plain_http_streams_what_is_accepted_first(instant: RunningEndpoint) -> None:
    texts = [{"text": text} for text in ("0", " 1", " 2", " 3")]
    _, kind, reported = ask(instant, "/invocations", {}, "text/event-stream;q=1, application/json")
    *events, last, end = reported.split("\n\n")
    assert kind == "text/event-stream"
    assert (data("\n\n".join([*events, ""])), last, end) == (texts, "data: [DONE]", "")
    _, kind, reported = ask(instant, "/invocations", {}, "application/x-ndjson")
    assert (kind, [json.loads(line) for line in reported.splitlines()]) == ("application/x-ndjson", texts)
    for accept in ("*/*", "application/json, text/event-stream"):
        assert json.loads(ask(instant, "/invocations", {}, accept)[2]) == {"predictions": [0.5]}


def test_plain_streams_tell_their_error_within(breaking: RunningEndpoint) -> None:
    _, _, reported = ask(breaking, "/invocations", {}, "application/x-ndjson")
    assert [list(json.loads(line)) for line in reported.splitlines()] == [["text"], ["text"], ["error"]]
    assert ask(breaking, "/invocations", {}, "text/event-stream")[2].endswith(
        f'data: {{"error":"{FAILED_AS_CONFIGURED}"}}\n\n'
    )


def test_texts_are_ranked_as_tei_does_and_documents_as_jina_does(instant: RunningEndpoint) -> None:
    texts = ["one two", "three"]
    _, _, reported = ask(instant, "/rerank", {"query": "a b", "texts": texts})
    assert json.loads(reported) == [{"index": 0, "score": 1.0}, {"index": 1, "score": 0.5}]
    for path in ("/rerank", "/v1/rerank"):
        ranked = json.loads(ask(instant, path, {"model": "m", "query": "a b", "documents": texts})[2])
        assert [(each["index"], each["document"]["text"]) for each in ranked["results"]] == [*enumerate(texts)]
        assert (ranked["model"], ranked["usage"]) == ("m", {"total_tokens": 7})


@pytest.mark.parametrize("wrong", [{}, {"query": "a"}, {"query": "", "texts": ["b"]}, {"query": "a", "texts": []}])
def test_a_ranking_of_nothing_is_refused(instant: RunningEndpoint, wrong: dict[str, Any]) -> None:
    assert ask(instant, "/rerank", wrong)[0] == 400
