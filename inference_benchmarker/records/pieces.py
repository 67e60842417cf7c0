"""The pieces of a stream: the text that each shows, and the answer that they make. Pure.

An event of an SDK's stream, whether it is an object or a dict, may show no text (a role, an end, a usage): it is no
token, and neither is one of a kind that is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.records.response import Response

_WRAPPERS = ("data", "chunk")
"""Members in which events have one of OpenAI's API: of Mistral's streams, and of the openai package's own."""
_REPEATED = (".done", "_stop", "-end")
"""Endings of the types of events that may repeat a whole text: of OpenAI's Responses, of Anthropic and of Cohere."""
_THOUGHT = ("thinking", "delta.reasoningContent")
_PLACES = (
    ("delta", ("", "text", "thinking", "partial_json", "message.content.text")),  # Responses, Anthropic, Cohere
    ("message", ("content", "thinking")),  # Ollama's chat
    ("response", ("",)),  # Ollama's generate
    ("token", ("text",)),  # TGI
    ("contentBlockDelta", ("delta.text", "delta.reasoningContent.text")),  # Bedrock's Converse
    ("content", ("",)),  # LangChain
    ("text", ("",)),  # Gemini, and many a small SDK
)
"""Members of an event, and the paths from there to a text; "" for a member that is one itself."""


class Piece(str):
    """A piece of a stream of which the server gave the number of ``tokens``; 0: its token came with the one before."""

    __slots__ = ("tokens",)
    tokens: int

    def __new__(cls, text: str, tokens: int) -> Self:
        """The piece with its text."""
        piece = super().__new__(cls, text)
        piece.tokens = tokens
        return piece


class Reasoning(Piece):
    """A piece in which a model reasons: ``answer`` is the part of it that belongs to the answer, mostly none."""

    __slots__ = ("answer",)
    answer: str

    def __new__(cls, text: str, answer: str = "", tokens: int = 1) -> Self:
        """The piece with its text."""
        piece = super().__new__(cls, text, tokens)
        piece.answer = answer
        return piece


def answered(piece: str) -> str:
    """The part of a piece that belongs to the answer."""
    return piece.answer if isinstance(piece, Reasoning) else piece


@dataclass(frozen=True, slots=True)
class Answer:
    """A streamed answer: its ``pieces`` as they came, and the ``text`` that they show, joined.

    It is iterated as the stream that ``invoke`` returned: its pieces, as often as one likes. Reasoning is in the pieces
    but not in the text. ``response`` is the usage that the answer reported, or None.
    """

    text: str
    pieces: tuple[Any, ...]
    response: Response | None = None

    @classmethod
    def of(cls, pieces: Sequence[Any], response: Response | None) -> Self:
        """The answer of these pieces."""
        said = (piece if isinstance(piece, str) else shown_text(piece) for piece in pieces)
        return cls("".join(map(answered, said)), tuple(pieces), response)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.pieces)


def shown_text(event: Any) -> str:
    """The text that the model generated of an event, "" where it shows none; what it thought is ``Reasoning``."""
    try:
        return _shown(event)
    except Exception:  # of the SDK's class, or one that only looks like a known one
        return ""


def _shown(event: Any) -> str:
    choices = _member(event, "choices")
    for name in _WRAPPERS if choices is None else ():
        choices = choices or _member(_member(event, name), "choices")
    if choices is not None:
        said = [text for text in map(_of_choice, choices) if text]
        return said[0] if len(said) == 1 else "".join(said)
    if _member(event, "snapshot") is not None:  # it repeats what an event before it said
        return ""
    kind = _member(event, "type")
    if isinstance(kind, str) and kind.endswith(_REPEATED):
        return ""
    for name, paths in _PLACES:
        if (holder := _member(event, name)) is None:
            continue
        for path in paths:
            if text := _joined(_at(holder, path)):
                is_thought = path.startswith(_THOUGHT) or (isinstance(kind, str) and ".reasoning" in kind)
                return Reasoning(text) if is_thought else text
    return ""


def _at(holder: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        holder = _member(holder, name)
    return holder


def _of_choice(choice: Any) -> str:
    """The text of one of OpenAI's choices: the answer, what was thought, a refusal, or a call of a tool."""
    delta = _member(choice, "delta") or _member(choice, "message")
    if delta is None:
        return _joined(_member(choice, "text"))
    said = _joined(_member(delta, "content")) + _joined(_member(delta, "refusal"))
    for call in _member(delta, "tool_calls") or ():
        function = _member(call, "function")
        said += _joined(_member(function, "name")) + _joined(_member(function, "arguments"))
    if said:
        return said
    thought = _joined(_member(delta, "reasoning_content")) or _joined(_member(delta, "reasoning"))
    return Reasoning(thought) if thought else ""


def _member(holder: Any, name: str) -> Any:
    if holder is None or isinstance(holder, str):
        return None
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _joined(value: Any) -> str:
    """A text, or one that stands in parts."""
    if isinstance(value, list):
        return "".join(_joined(_member(part, "text")) for part in value)
    return value if isinstance(value, str) else ""
