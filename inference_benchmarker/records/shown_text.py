"""The text that an event of an SDK's stream shows, whether it is an object or a dict. Pure.

An event that shows none (a role, an end, a usage) is no token, and neither is one of a kind that is not known here.
"""

from __future__ import annotations

from typing import Any

from inference_benchmarker.records.piece import Reasoning

_WRAPPERS = ("data", "chunk")
"""Members in which events have one of OpenAI's API: of Mistral's streams, and of the openai package's own."""
_REPEATED = (".done", "_stop", "-end")
"""Endings of the types of events that may repeat a whole text: of OpenAI's Responses, of Anthropic and of Cohere."""
_THOUGHT = frozenset(("thinking", "reasoningContent"))
_PATHS = tuple(
    tuple(path.split("."))
    for path in (
        "delta",  # OpenAI's Responses, LlamaIndex
        "delta.text",  # Anthropic
        "delta.thinking",
        "delta.partial_json",
        "delta.message.content.text",  # Cohere
        "message.content",  # Ollama's chat
        "message.thinking",
        "response",  # Ollama's generate
        "token.text",  # TGI
        "contentBlockDelta.delta.text",  # Bedrock's Converse
        "contentBlockDelta.delta.reasoningContent.text",
        "content",  # LangChain
        "text",  # Google's Gemini, and many a small SDK
    )
)


def shown_text(event: Any) -> str:
    """The text that the model generated of an event, "" where it shows none; what it thought is ``Reasoning``."""
    try:
        return _shown(event)
    except Exception:  # of the SDK's class, or one that only looks like a known one
        return ""


def _shown(event: Any) -> str:
    for name in _WRAPPERS:
        if _member(inner := _member(event, name), "choices") is not None:
            event = inner
    if (choices := _member(event, "choices")) is not None:
        said = [text for text in map(_of_choice, choices) if text]
        return said[0] if len(said) == 1 else "".join(said)
    if _member(event, "snapshot") is not None:  # it repeats what an event before it said
        return ""
    kind = _member(event, "type")
    if isinstance(kind, str) and kind.endswith(_REPEATED):
        return ""
    for path in _PATHS:
        value = event
        for name in path:
            value = _member(value, name)
        if text := _joined(value):
            is_thought = not _THOUGHT.isdisjoint(path) or (isinstance(kind, str) and ".reasoning" in kind)
            return Reasoning(text) if is_thought else text
    return ""


def _of_choice(choice: Any) -> str:
    """The text of one of OpenAI's choices: the answer, what was thought, a refusal, or a call of a tool."""
    delta = _member(choice, "delta") or _member(choice, "message")
    if delta is None:
        return _joined(_member(choice, "text"))
    said = _joined(_member(delta, "content")) + _joined(_member(delta, "refusal"))
    for call in _member(delta, "tool_calls") or ():
        function = _member(call, "function")
        said += _joined(_member(function, "name")) + _joined(_member(function, "arguments"))
    thought = _joined(_member(delta, "reasoning_content")) or _joined(_member(delta, "reasoning"))
    return Reasoning(said + thought, said) if thought else said


def _member(holder: Any, name: str) -> Any:
    if holder is None or isinstance(holder, str):
        return None
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _joined(value: Any) -> str:
    """A text, or one that stands in parts."""
    if isinstance(value, list):
        return "".join(_joined(_member(part, "text")) for part in value)
    return value if isinstance(value, str) else ""
