"""Bedrock's runtime, as boto3's ``converse`` and ``converse_stream`` read it. The time a model took is not in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED
from inference_benchmarker.embedded.http.messages import Answer, HttpError, json_answer
from inference_benchmarker.embedded.protocols.dialects import json_object, request_id, token
from inference_benchmarker.embedded.protocols.event_stream import EVENT_STREAM, frame
from inference_benchmarker.embedded.protocols.generation import MAX_TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.protocols.dialects import Stream

_CODES: Mapping[int, str] = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
"""Statuses that are Bedrock's own; any other is the model's."""


class ConverseDialect:
    """Converse, in one piece: the numbers from 0, a word and a token each."""

    def __init__(self, tokens: int, stop_reason: str | None = None) -> None:
        self._tokens = tokens
        self._given_reason = stop_reason

    def reply(self, request: Request, sequence: int) -> Answer | Stream:
        """As many tokens as ``inferenceConfig.maxTokens`` allows, else as many as configured."""
        asked = json_object(request.body)
        tokens, usage = self._counts(asked)
        content = [{"text": "".join(map(token, range(tokens)))}]
        message = {"role": "assistant", "content": content}
        answer = {"output": {"message": message}, "stopReason": self._stop_reason(asked), "usage": usage}
        return json_answer(200, answer, request_id(sequence))

    def failure(self, status: int, reason: str, sequence: int) -> Answer:
        """An AWS error; a model's own is a ModelErrorException, HTTP 424, whatever status the model gave."""
        content: dict[str, object] = {"message": reason}
        if status == 429:
            content["message"] = "Too many requests, please wait before trying again."
        elif status not in _CODES:
            content["originalStatusCode"] = status
        code = _CODES.get(status, "ModelErrorException")
        answered = status if status in _CODES else 424
        return json_answer(answered, content, {"x-amzn-ErrorType": code, **request_id(sequence)})

    def _counts(self, asked: Mapping[str, Any]) -> tuple[int, dict[str, int]]:
        """The number of tokens to give, and the usage. Raises HttpError."""
        tokens = _token_limit(asked) or self._tokens
        tokens_in = len(_text(asked).split())
        return tokens, {"inputTokens": tokens_in, "outputTokens": tokens, "totalTokens": tokens_in + tokens}

    def _stop_reason(self, asked: Mapping[str, Any]) -> str:
        return self._given_reason or ("max_tokens" if _token_limit(asked) else "end_turn")


class ConverseStreamDialect(ConverseDialect):
    """Converse as an event stream, a token in each delta."""

    def reply(self, request: Request, sequence: int) -> Stream:
        """The same tokens as in one piece."""
        asked = json_object(request.body)
        tokens, usage = self._counts(asked)
        head = Answer(200, b"", EVENT_STREAM, request_id(sequence))
        return DeltaStream(head, tokens, self._stop_reason(asked), usage)


class DeltaStream:
    """A message's events; those around its deltas leave with the first and the last one."""

    __slots__ = ("_stop_reason", "_usage", "head", "pieces")

    def __init__(self, head: Answer, pieces: int, stop_reason: str, usage: dict[str, int]) -> None:
        self.head = head
        self.pieces = pieces
        self._stop_reason = stop_reason
        self._usage = usage

    def events(self, piece: int) -> Sequence[bytes]:
        """A delta."""
        found = [_event("contentBlockDelta", {"delta": {"text": token(piece)}, "contentBlockIndex": 0})]
        if piece == 0:
            found.insert(0, _event("messageStart", {"role": "assistant"}))
        if piece == self.pieces - 1:
            found += [
                _event("contentBlockStop", {"contentBlockIndex": 0}),
                _event("messageStop", {"stopReason": self._stop_reason}),
                _event("metadata", {"usage": self._usage}),
            ]
        return found

    def broken(self) -> Sequence[bytes]:
        """The exception modelStreamErrorException."""
        kinds = {":exception-type": "modelStreamErrorException", ":content-type": "application/json"}
        fields = {"message": FAILED_AS_CONFIGURED, "originalStatusCode": 500}
        return (frame({**kinds, ":message-type": "exception"}, json.dumps(fields).encode()),)


def _event(kind: str, content: Mapping[str, object]) -> bytes:
    kinds = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return frame(kinds, json.dumps(content, separators=(",", ":")).encode())


def _text(asked: Mapping[str, Any]) -> str:
    """All text of the conversation. Raises HttpError."""
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise HttpError(400, "The body needs messages: a list with at least one object.")
    contents = [message.get("content") for message in [*messages, {"content": asked.get("system") or []}]]
    if not all(isinstance(content, list) and all(isinstance(block, dict) for block in content) for content in contents):
        raise HttpError(400, "A message's content must be a list of objects, and so must system.")
    return " ".join(str(block.get("text", "")) for content in contents for block in content)


def _token_limit(asked: Mapping[str, Any]) -> int | None:
    config = asked.get("inferenceConfig")
    limit = config.get("maxTokens") if isinstance(config, dict) else None
    if limit is not None and (type(limit) is not int or not 1 <= limit <= MAX_TOKENS):
        raise HttpError(400, f"maxTokens is {limit!r}: it must be an integer from 1 to {MAX_TOKENS}.")
    return limit
