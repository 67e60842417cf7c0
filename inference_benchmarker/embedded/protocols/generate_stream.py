"""Generated texts of Triton (its generate extension) and MLServer, as server-sent events with one token in each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED
from inference_benchmarker.embedded.http.messages import Answer, HttpError, json_answer
from inference_benchmarker.embedded.protocols.dialects import EventStream, json_object, token
from inference_benchmarker.embedded.protocols.generation import MAX_TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.protocols.dialects import Stream


class GenerateStreamDialect:
    """To a ``text_input`` it answers as Triton does, to ``inputs`` as MLServer."""

    def __init__(self, tokens: int, finish_reason: str | None = None) -> None:
        self._tokens = tokens
        self._finish_reason = finish_reason

    def reply(self, request: Request, sequence: int) -> Stream:  # noqa: ARG002 - not all need all
        """As many tokens as ``parameters.max_tokens`` allows, else as many as configured."""
        asked = json_object(request.body)
        is_triton = _is_triton(asked)
        tokens, reason = _limit(asked) or self._tokens, self._reason(asked)
        model = {"model_name": request.path.split("/")[3], "model_version": "1"}  # /v2/models/NAME/generate_stream

        def event(index: int) -> bytes:
            if not is_triton:
                return _event({**model, **_outputs(token(index))})
            fields = {"finish_reason": reason if index == tokens - 1 else "None"} if reason else {}
            return _event({**model, "text_output": token(index), **fields})

        head = Answer(200, b"", "text/event-stream; charset=utf-8")
        return EventStream(head, tokens, event, _event({"error": FAILED_AS_CONFIGURED}))

    def _reason(self, asked: Mapping[str, Any]) -> str | None:
        """Why the text ends, which Triton's vLLM gives when it is asked; MLServer gives none."""
        own = "length" if _limit(asked) else "stop"
        return self._finish_reason or (own if _parameters(asked).get("return_finish_reason") else None)

    def failure(self, status: int, reason: str, sequence: int) -> Answer:  # noqa: ARG002 - not all need all
        """The reason as ``error``."""
        return json_answer(status, {"error": reason})


def _is_triton(asked: Mapping[str, Any]) -> bool:
    """Tells the two apart. Raises HttpError for what is neither."""
    if "text_input" in asked:
        if not isinstance(asked["text_input"], str):
            raise HttpError(400, "text_input must be a string")
        return True
    inputs = asked.get("inputs")
    if not isinstance(inputs, list) or not inputs or not all(isinstance(each, dict) for each in inputs):
        raise HttpError(400, "the body needs text_input, a text, or inputs, a list with at least one tensor")
    return False


def _parameters(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = asked.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def _limit(asked: Mapping[str, Any]) -> int | None:
    limit = _parameters(asked).get("max_tokens")
    if limit is None or (type(limit) is int and 1 <= limit <= MAX_TOKENS):
        return limit
    raise HttpError(400, f"max_tokens is {limit!r}: it must be an integer from 1 to {MAX_TOKENS}")


def _outputs(text: str) -> dict[str, object]:
    return {"outputs": [{"name": "output", "shape": [1, 1], "datatype": "BYTES", "data": [text]}]}


def _event(content: Mapping[str, object]) -> bytes:
    return b"data: %b\n\n" % json.dumps(content, separators=(",", ":")).encode()
