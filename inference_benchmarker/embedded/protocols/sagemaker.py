"""SageMaker's runtime, as boto3's ``sagemaker-runtime`` client reads it: answers whole, and streams of parts."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED
from inference_benchmarker.embedded.http.messages import Answer, HttpError, json_answer
from inference_benchmarker.embedded.protocols.chat import ChatStream, chat_completion
from inference_benchmarker.embedded.protocols.dialects import json_or_none, request_id, token
from inference_benchmarker.embedded.protocols.event_stream import EVENT_STREAM, frame
from inference_benchmarker.embedded.protocols.generation import BY_THE_MODEL, Generation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.protocols.dialects import Stream

_VARIANT = "x-Amzn-Invoked-Production-Variant"
BY_VARIANT = {_VARIANT: "AllTraffic"}
_MARK = b'"messages"'


class SageMakerDialect:
    """SageMaker's runtime, as boto3's ``sagemaker-runtime`` client reads it."""

    _BODY = json.dumps({"predictions": [0.5]}, separators=(",", ":")).encode()
    _CODES: Mapping[int, tuple[int, str]] = {
        400: (400, "ValidationError"),
        429: (400, "ThrottlingException"),
        500: (500, "InternalFailure"),
        503: (503, "ServiceUnavailable"),
        530: (530, "InternalDependencyException"),
    }
    """Statuses that are SageMaker's own, and how it words them; any other is the model's."""

    def __init__(self, tokens: int, finish_reason: str | None = None) -> None:
        self._tokens = tokens
        self._finish_reason = finish_reason

    def reply(self, request: Request, sequence: int) -> Answer | Stream:
        """By the variant AllTraffic: a chat or a generated text where the request asks for one, else a prediction."""
        headers = BY_VARIANT | request_id(sequence)
        chat = self._chat(request.body, sequence)
        if isinstance(chat, ChatStream):  # the body asks for a stream, the call does not: all of it in one piece
            events = chain.from_iterable(map(chat.events, range(chat.pieces)))
            return Answer(200, b"".join(events), chat.head.content_type, headers)
        if chat:
            return replace(chat, headers=headers)
        generation = Generation.asked_for(request.body, self._tokens, self._finish_reason)
        return Answer(200, generation.whole() if generation else self._BODY, headers=headers)

    def failure(self, status: int, reason: str, sequence: int) -> Answer:
        """An AWS error: its code in x-amzn-ErrorType, its text in the body's Message.

        A model's own error is a ModelError, HTTP 424, whatever status the model gave.
        """
        if status in self._CODES:
            answered, code = self._CODES[status]
            content: dict[str, object] = {"Message": "Rate exceeded" if status == 429 else reason}
        else:
            answered, code = 424, "ModelError"
            kind = "client" if status < 500 else "server"
            message = f'Received {kind} error ({status}) from primary with message "{reason}"'
            content = {"Message": message, "OriginalMessage": reason, "OriginalStatusCode": status}
        return json_answer(answered, content, {"x-amzn-ErrorType": code} | request_id(sequence))

    def _chat(self, body: bytes, sequence: int) -> Answer | ChatStream | None:
        """The answer of a container that has OpenAI's API; None where the request has no messages. Raises HttpError."""
        asked = json_or_none(body) if _MARK in body else None
        if not isinstance(asked, dict) or "messages" not in asked:
            return None
        try:
            return chat_completion(asked, sequence, self._tokens, self._finish_reason)
        except HttpError as error:
            raise HttpError(BY_THE_MODEL, error.reason) from error


class SageMakerStreamDialect(SageMakerDialect):
    """The stream that boto3's ``invoke_endpoint_with_response_stream`` reads: the tokens come in parts."""

    def reply(self, request: Request, sequence: int) -> PartStream:
        """A chat where the request has messages, a text where it has parameters for one, else words, all as configured.

        A chat comes as server-sent events, a text as a line of JSON a token.
        """
        chat = self._chat(request.body, sequence)
        if isinstance(chat, ChatStream):
            return PartStream(_head(chat.head.content_type, sequence), chat.pieces, partial(_cut_events, chat))
        if chat:  # the call asks for a stream, the body does not
            return PartStream(_head(chat.content_type, sequence), 1, lambda _: (chat.body,))
        generation = Generation.asked_for(request.body, self._tokens, self._finish_reason)
        if generation:
            head = _head("application/jsonlines", sequence)
            return PartStream(head, generation.tokens, lambda index: (generation.line(index),))
        return PartStream(_head("text/plain", sequence), self._tokens, _word)


def by_variant(reply: Answer | Stream, name: str) -> Answer | Stream:
    """The same reply by the variant of that name, where it has one at all."""
    if isinstance(reply, Answer):
        return replace(reply, headers={**reply.headers, _VARIANT: name}) if _VARIANT in reply.headers else reply
    if _VARIANT in reply.head.headers:
        reply.head = replace(reply.head, headers={**reply.head.headers, _VARIANT: name})
    return reply


def _head(content_type: str, sequence: int) -> Answer:
    headers = {**BY_VARIANT, "X-Amzn-SageMaker-Content-Type": content_type, **request_id(sequence)}
    return Answer(200, b"", EVENT_STREAM, headers)


def _cut_events(chat: ChatStream, index: int) -> Sequence[bytes]:
    """The events of a token in two parts, the first of which ends within a line: SageMaker cuts where it likes."""
    text = b"".join(chat.events(index))
    first = text.index(b"\n")
    cut = 1 + 7 * index % (first - 1)
    return text[:cut], text[cut:]


def _word(index: int) -> Sequence[bytes]:
    return (token(index).encode(),)


class PartStream:
    """An answer in parts, one or several a piece."""

    __slots__ = ("_parts", "head", "pieces")

    def __init__(self, head: Answer, pieces: int, parts: Callable[[int], Sequence[bytes]]) -> None:
        self.head = head
        self.pieces = pieces
        self._parts = parts

    def events(self, piece: int) -> Sequence[bytes]:
        """The parts of a piece."""
        kinds = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
        return [frame(kinds, part) for part in self._parts(piece)]

    def broken(self) -> Sequence[bytes]:
        """The exception ModelStreamError."""
        kinds = {":exception-type": "ModelStreamError", ":content-type": "application/json"}
        fields = {"Message": FAILED_AS_CONFIGURED, "ErrorCode": "StreamBroken"}
        return (frame({**kinds, ":message-type": "exception"}, json.dumps(fields).encode()),)
