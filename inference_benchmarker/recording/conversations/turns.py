"""The turns of recorded conversations as they are kept, whatever the format of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.recording.source import TIME_NAMES
from inference_benchmarker.records.record import MOST_TURN
from inference_benchmarker.words.redact import excerpt, quoted
from inference_benchmarker.words.units import MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence


MOST_TOKENS = 10_000_000  # of a prompt or an answer: no model takes more
CHARACTERS_A_TOKEN = 4  # of English text, roughly: it only bounds an answer whose length nobody recorded in tokens
_WHOLE = {int}
USERS = ("human", "user", "system", "tool", "developer")
ANSWERS = ("gpt", "chatgpt", "assistant", "bot", "model", "bard", "bing")


class ConversationRow(NamedTuple):
    """A conversation, or one turn of the conversation that is called ``key``, as its row has it.

    ``at``: when it was sent, as it stands there; None where nothing says so. ``took_ns``: until its answer was whole.
    ``held``: the bytes that the row takes in memory, about.
    """

    line: int
    at: Any
    turns: list[dict[str, Any]]
    key: str | None = None
    took_ns: int = 0
    about: dict[str, Any] = {}  # noqa: RUF012 - never changed: what is kept beside the turns
    held: int = 0


def message_of(said: dict[str, Any]) -> dict[str, Any]:
    """A message as OpenAI's API has it, of what somebody said in ShareGPT's way."""
    who, text = str(said.get("from") or said["role"]), said.get("value", said.get("content"))
    role = "assistant" if who in ANSWERS else who if who in USERS else None
    if role is None:
        raise ValueError(f"somebody is called {quoted(who, 30)}, neither a user nor a model")
    if not isinstance(text, str):
        raise ValueError("the content of a message is not text")
    return {"role": "user" if role == "human" else role, "content": text}


def messages_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of an object in the form of OpenAI; ValueError for others."""
    messages = list_of(value["messages"])
    if not all(isinstance(each, dict) and isinstance(each.get("role"), str) for each in messages):
        raise ValueError("a message has no role")
    return messages


def turns_of(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns of a conversation: each adds messages and has an answer, the last one perhaps none."""
    turns: list[dict[str, Any]] = []
    added: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] != "assistant":
            added.append(message)
        elif added:
            turns.append({"messages": added, "answer": message, "out": length_of(message)})
            added = []
        else:
            raise ValueError("an answer follows no question")
    if any(each["role"] in ("user", "tool", "function") for each in added):
        turns.append({"messages": added})
    return some_of(turns)


def length_of(message: dict[str, Any]) -> int:
    """The tokens of an answer, about: nobody recorded them."""
    content = message.get("content")
    text = content if isinstance(content, str) else str(content or message.get("tool_calls") or "")
    return max(1, -(-len(text) // CHARACTERS_A_TOKEN))


def hash_blocks_of(value: dict[str, Any]) -> list[int]:
    """The numbers of the blocks that a prompt begins with; ValueError for what is no number."""
    ids = value.get("hash_ids")
    if ids is None:
        return []
    if not isinstance(ids, list) or not {*map(type, ids)} <= _WHOLE:
        raise ValueError("hash_ids are not whole numbers")
    return ids


def tokens_of(count: Any, least: int = 1) -> int:
    """A count of tokens that a model can take; ValueError for others."""
    if type(count) is not int or not least <= count <= MOST_TOKENS:
        raise ValueError(f"{excerpt(str(count), 30)} is not a number of tokens")
    return count


def seconds_of(seconds: float) -> float:
    """A time in seconds within the bounds of a recording; ValueError for others."""
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{seconds} is not a time in seconds")
    return seconds


def list_of(value: Any) -> list[Any]:
    """A value that is a list; ValueError for others."""
    if not isinstance(value, list):
        raise ValueError("its messages are not a list")
    return value


def some_of(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns, of which there is one and no more than a session has; ValueError for others."""
    if not 1 <= len(turns) <= MOST_TURN:
        raise ValueError("nobody asks anything" if not turns else f"has more than {MOST_TURN:,} turns")
    return turns


def instant_of(value: dict[str, Any]) -> Any:
    """When a conversation began, where it says so."""
    return next((value[name] for name in TIME_NAMES if value.get(name) is not None), None)
