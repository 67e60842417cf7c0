"""OpenAI's responses, whole or as server-sent events with one token in each delta."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED
from inference_benchmarker.embedded.http.messages import Answer, HttpError, json_answer
from inference_benchmarker.embedded.protocols.chat import Chat, OpenAiDialect
from inference_benchmarker.embedded.protocols.dialects import json_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.protocols.dialects import Stream

_BEFORE = 4  # events before the first delta
# A response's status by the reason for which it ends; for any other it is incomplete, and details tell the reason.
_STATUSES = {"stop": "completed", "tool_calls": "completed", "abort": "cancelled", "error": "failed"}
_OUT_OF_TOKENS = "max_output_tokens"


class ResponsesDialect(OpenAiDialect):
    """A message of as many tokens as it may have; one cut short is incomplete, one given up cancelled."""

    def reply(self, request: Request, sequence: int) -> Answer | Stream:
        """A response, or the stream of its events."""
        asked = json_object(request.body)
        prompt_tokens = len(_input(asked).split())
        chat = Chat.asked_for(asked, f"resp_{sequence}", self._tokens, prompt_tokens, self._finish_reason)
        return ResponseStream(chat) if asked.get("stream") else json_answer(200, _response(chat, _status(chat)))


class ResponseStream:
    """The events of a response; those around its deltas leave with the first and the last one."""

    __slots__ = ("_chat", "head", "pieces")

    def __init__(self, chat: Chat) -> None:
        self.head = Answer(200, b"", "text/event-stream", {"Cache-Control": "no-cache"})
        self.pieces = chat.tokens
        self._chat = chat

    def events(self, piece: int) -> Sequence[bytes]:
        """A delta."""
        delta = {**self._place, "delta": self._chat.token(piece), "logprobs": []}
        found = [self._event(_BEFORE + piece, "response.output_text.delta", delta)]
        if piece == 0:
            found[:0] = self._numbered(0, self._before())
        if piece == self.pieces - 1:
            found += self._numbered(_BEFORE + self.pieces, self._after())
        return found

    def broken(self) -> Sequence[bytes]:
        """The event response.failed in place of a delta."""
        failed = {"response": _response(self._chat, "failed")}
        return (self._event(_BEFORE + self.pieces // 2, "response.failed", failed),)

    @property
    def _place(self) -> dict[str, object]:
        return {"item_id": _item_id(self._chat), "output_index": 0, "content_index": 0}

    def _before(self) -> Iterator[tuple[str, dict[str, object]]]:
        begun: dict[str, object] = {"response": _response(self._chat, "in_progress")}
        yield "response.created", begun
        yield "response.in_progress", begun
        yield "response.output_item.added", {"output_index": 0, "item": _message(self._chat, "in_progress")}
        yield "response.content_part.added", {**self._place, "part": _part("")}

    def _after(self) -> Iterator[tuple[str, dict[str, object]]]:
        status = _status(self._chat)
        text = self._chat.text()
        yield "response.output_text.done", {**self._place, "text": text, "logprobs": []}
        yield "response.content_part.done", {**self._place, "part": _part(text)}
        yield "response.output_item.done", {"output_index": 0, "item": _message(self._chat, status)}
        yield f"response.{status}", {"response": _response(self._chat, status)}

    def _numbered(self, first: int, events: Iterator[tuple[str, dict[str, object]]]) -> list[bytes]:
        return [self._event(number, kind, content) for number, (kind, content) in enumerate(events, first)]

    @staticmethod
    def _event(number: int, kind: str, content: Mapping[str, object]) -> bytes:
        fields = {"type": kind, "sequence_number": number, **content}
        return f"event: {kind}\ndata: {json.dumps(fields, separators=(',', ':'))}\n\n".encode()


def _status(chat: Chat) -> str:
    return _STATUSES.get(chat.finish_reason, "incomplete")


def _response(chat: Chat, status: str) -> dict[str, object]:
    over = status in ("completed", "incomplete")
    return {
        "id": chat.id,
        "object": "response",
        "created_at": chat.created,
        "model": chat.model,
        "status": status,
        "error": {"code": "server_error", "message": FAILED_AS_CONFIGURED} if status == "failed" else None,
        "incomplete_details": {"reason": _incomplete(chat)} if status == "incomplete" else None,
        "output": [_message(chat, status)] if over else [],
        "usage": _usage(chat) if over else None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _incomplete(chat: Chat) -> str:
    return _OUT_OF_TOKENS if chat.finish_reason == "length" else chat.finish_reason


def _message(chat: Chat, status: str) -> dict[str, object]:
    if status not in {"in_progress", "completed"}:
        status = "incomplete"  # items have no other
    content = [] if status == "in_progress" else [_part(chat.text())]
    return {"id": _item_id(chat), "type": "message", "role": "assistant", "status": status, "content": content}


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item_id(chat: Chat) -> str:
    return chat.id.replace("resp", "msg")


def _usage(chat: Chat) -> dict[str, object]:
    counts = chat.usage()
    return {
        "input_tokens": counts["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": counts["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counts["total_tokens"],
    }


def _input(asked: Mapping[str, Any]) -> str:
    """All text of the input: a text, or messages. Raises HttpError."""
    given = asked.get("input")
    if isinstance(given, str) and given:
        return given
    if not isinstance(given, list) or not given or not all(isinstance(item, dict) for item in given):
        raise HttpError(400, "the body needs input: a text, or a list with at least one object")
    return " ".join(map(_content, given))


def _content(item: Mapping[str, Any]) -> str:
    content = item.get("content", "")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)
