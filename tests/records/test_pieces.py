"""Of an event of an SDK's stream, the text that it shows is a token; its role, its end and its usage are none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

from inference_benchmarker.records.pieces import Reasoning, shown_text


def as_object(value: Any) -> Any:
    """The same with members in the place of keys."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: as_object(each) for name, each in value.items()})
    return [as_object(each) for each in value] if isinstance(value, list) else value


def choice(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **more}]}


CALL = {"tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}
OF_EVENTS: list[tuple[dict[str, Any], str]] = [
    (choice({"role": "assistant", "content": ""}), ""),
    (choice({"content": "one "}), "one "),
    (choice({"content": [{"type": "text", "text": "one"}]}), "one"),
    (choice({"content": None, **CALL}), "f{"),
    (choice({"refusal": "no"}), "no"),
    (choice({}, finish_reason="stop"), ""),
    ({"choices": [], "usage": {"completion_tokens": 5}}, ""),
    ({"choices": [{"text": "one"}]}, "one"),
    ({"choices": [{"text": "a"}, {"text": "b"}]}, "ab"),
    ({"data": choice({"content": "one"})}, "one"),
    ({"type": "chunk", "chunk": choice({"content": "one"}), "snapshot": {}}, "one"),
    ({"type": "content.delta", "delta": "one", "snapshot": "one"}, ""),
    ({"type": "response.output_text.delta", "delta": "one"}, "one"),
    ({"type": "response.output_text.done", "text": "one two"}, ""),
    ({"type": "response.completed", "response": {"id": "r"}}, ""),
    ({"type": "message_start", "message": {"role": "assistant", "content": []}}, ""),
    ({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "one"}}, "one"),
    ({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}}, "{"),
    ({"type": "text", "text": "one", "snapshot": "zero one"}, ""),
    ({"type": "content_block_stop", "content_block": {"type": "text", "text": "one two"}}, ""),
    ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}, ""),
    ({"type": "content-delta", "delta": {"message": {"content": {"text": "one"}}}}, "one"),
    ({"message": {"role": "assistant", "content": "one"}, "done": False}, "one"),
    ({"message": {"role": "assistant", "content": ""}, "done": True, "eval_count": 5}, ""),
    ({"response": "one", "done": False}, "one"),
    ({"token": {"id": 3, "text": "one", "special": False}, "generated_text": None}, "one"),
    ({"contentBlockDelta": {"delta": {"text": "one"}}}, "one"),
    ({"messageStop": {"stopReason": "end_turn"}}, ""),
    ({"type": "AIMessageChunk", "content": "one"}, "one"),
    ({"text": "one", "candidates": []}, "one"),
    ({"text": None, "candidates": []}, ""),
    ({"PayloadPart": {"Bytes": b"x"}}, ""),
    ({"token": 3}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("event", "text"), OF_EVENTS)
def test_an_event_shows_the_text_that_it_brings(event: dict[str, Any], text: str) -> None:
    assert (shown_text(event), shown_text(as_object(event))) == (text, text)


def test_a_chunk_of_the_openai_package_shows_its_text() -> None:
    about = {"id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    said = [
        shown_text(ChatCompletionChunk.model_validate({**about, **each}))
        for each in (
            choice({"role": "assistant", "content": ""}),
            choice({"content": "one"}),
            choice({}, finish_reason="stop"),
            {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
        )
    ]
    assert said == ["", "one", "", ""]


@pytest.mark.parametrize(
    "event",
    [
        choice({"reasoning_content": "hm"}),
        choice({"reasoning": "hm"}),
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"message": {"content": "", "thinking": "hm"}},
        {"contentBlockDelta": {"delta": {"reasoningContent": {"text": "hm"}}}},
        {"type": "response.reasoning_text.delta", "delta": "hm"},
    ],
)
def test_what_a_model_thinks_is_no_part_of_the_answer(event: dict[str, Any]) -> None:
    for said in (shown_text(event), shown_text(as_object(event))):
        assert isinstance(said, Reasoning)
        assert (said, said.answer) == ("hm", "")


class Spoiled:
    """One whose members raise."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


NAMES = st.sampled_from(["choices", "delta", "text", "message", "content", "chunk", "type", "token", "snapshot", "x"])
VALUES = st.none() | st.text(max_size=3) | st.integers() | st.binary(max_size=3)
EVENTS = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4))


@given(EVENTS)
def test_any_event_shows_a_text_or_none(event: Any) -> None:
    assert isinstance(shown_text(event), str)
    assert shown_text(event) == shown_text(as_object(event))
    assert shown_text(Spoiled()) == ""
