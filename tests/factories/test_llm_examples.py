"""The examples for language models: prompts that no cache knows, and streams that the openai package takes for good."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import Response, clients
from inference_benchmarker.embedded.aws.boto3_settings import isolated
from inference_benchmarker.engine.endpoint.factories_file import Endpoint, load
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.response import FinishReasonError
from tests.scripted_server import ScriptedServer, answer
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OURS = ("chat", "stream_chat", "completions", "stream_completions", "embeddings")
PACKAGE = "openai_compatible/factories_chat_stream_openai_package"


def chat(payload: dict[str, Any]) -> list[str]:
    return [payload["messages"][0]["content"]]


PROMPTS: dict[str, Callable[[Any], list[Any]]] = {
    "openai_compatible/factories_chat": chat,
    "openai_compatible/factories_chat_stream": chat,
    PACKAGE: lambda payload: [payload],
    "openai_compatible/factories_completions_stream": lambda payload: [payload["prompt"]],
    "openai_compatible/factories_embeddings": lambda payload: payload["input"],
    "openai_compatible/factories_rerank": lambda payload: [payload["query"], *payload["documents"]],
    "openai_compatible/factories_responses_stream": lambda payload: [payload["input"]],
    "kserve_v2/factories_generate_stream": lambda payload: payload["inputs"][0]["data"],
    "payload_sources/factories_generated_prompts": chat,
    "payload_sources/factories_trace": chat,
    "sagemakerai_realtime/factories_llm_chat": lambda payload: chat(json.loads(payload)),
    "sagemakerai_realtime/factories_llm_chat_stream": lambda payload: chat(json.loads(payload)),
    "sagemakerai_realtime/factories_llm_textgeneration": lambda payload: [json.loads(payload)["inputs"]],
    "sagemakerai_realtime/factories_llm_textgeneration_stream": lambda payload: [json.loads(payload)["inputs"]],
}


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in isolated({}, "http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)


def sent(example: Endpoint, requests: int, given: list[Any]) -> Iterator[Any]:
    """The payloads that reach a client; ``given`` is what the stand-in of ours notes."""
    for index in range(requests):
        if example.payloads is None:
            assert example.build is not None
            yield example.build()
        else:
            example.invoke(example.payloads[example.choose(1, index)])
            yield given.pop()


@pytest.mark.parametrize("name", PROMPTS)
def test_no_two_prompts_of_a_wave_or_of_two_workers_begin_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's prefix cache would answer the second of them faster than a user's."""
    given: list[Any] = []
    ours = SimpleNamespace(**dict.fromkeys(OURS, given.append))
    monkeypatch.setattr(clients, "OpenAIClient", lambda *_, **__: ours)
    beginnings = []
    for _ in range(2):
        example = load(FACTORIES / f"{name}.py", "demo")
        for payload in sent(example, 700, given):
            prompts = PROMPTS[name](payload)
            words = [prompt.split(" ") if isinstance(prompt, str) else prompt for prompt in prompts]
            beginnings += [tuple(each[:8]) for each in words if len(each) > 5]  # a trace has shorter ones, too
    assert len(beginnings) > 1000
    assert len(set(beginnings)) == len(beginnings)


def test_a_row_of_a_trace_keeps_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(clients, "OpenAIClient", lambda *_, **__: SimpleNamespace(stream_chat=given.append))
    trace = load(FACTORIES / "payload_sources/factories_trace.py")
    assert trace.build is not None
    payload = trace.build()
    for words in (1, 2, 8, 9, 300):
        trace.invoke({**payload, "messages": [{"role": "user", "content": " ".join(["word"] * words)}]})
        assert len(chat(given[-1])[0].split(" ")) == words
        assert given[-1]["max_tokens"] == payload["max_tokens"]


def event(finish_reason: str | None = None, **delta: str) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: %b\n\n" % json.dumps({"model": "m", "choices": [choice]}).encode()


USAGE = (
    b'data: {"model": "m", "choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}}\n\n'
)
THOUGHT = [event(reasoning_content="hm"), event(reasoning="so"), event(content="a", finish_reason="stop")]


def read(monkeypatch: pytest.MonkeyPatch, *events: bytes) -> Iterator[Any]:
    """What the example of the openai package makes of a stream."""
    with ScriptedServer([[answer(b"".join(events), Content_Type="text/event-stream")]]) as server:
        monkeypatch.setenv("BENCHMARK_DEMO_URL", server.url)
        yield from load(FACTORIES / f"{PACKAGE}.py").invoke("Why?")


@pytest.mark.parametrize("missing", ["openai", "httpx2"])
def test_what_to_install_for_the_package_is_said(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BenchmarkError, match=rf"{missing}.*{sys.executable} -m pip install 'openai>=3'$"):
        load(FACTORIES / f"{PACKAGE}.py")


def test_reasoning_counts_as_tokens_with_the_package_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [*read(monkeypatch, *THOUGHT, USAGE, b"data: [DONE]\n\n")]
    assert pieces == ["hm", "so", "a", Response(2, 3, model="m"), Response(finish_reason="stop")]


def test_tokens_that_are_reported_and_not_shown_are_an_answer_with_the_package_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pieces = [*read(monkeypatch, event(finish_reason="stop"), USAGE, b"data: [DONE]\n\n")]
    assert pieces == [Response(2, 3, model="m"), Response(finish_reason="stop")]


def test_an_answer_that_the_server_gave_up_has_failed_with_the_package_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FinishReasonError, match="abort"):
        list(read(monkeypatch, THOUGHT[0], event(finish_reason="abort"), USAGE, b"data: [DONE]\n\n"))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (THOUGHT[:2], "after 2 pieces, without a finish_reason"),
        ([b'{"choices": []}\n'], "without a finish_reason"),
        ([event(finish_reason="stop"), b"data: [DONE]\n\n"], "no token in it: its finish_reason is stop"),
    ],
    ids=["cut off", "lines of JSON", "nothing"],
)
def test_a_stream_that_the_package_takes_for_whole_has_failed(
    events: list[bytes], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Exception, match=expected):
        list(read(monkeypatch, *events))
