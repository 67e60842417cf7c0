"""Text generation behind SageMaker: ``inputs`` and ``parameters``, answered whole or as a JSON object a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.embedded.http.messages import HttpError
from inference_benchmarker.embedded.protocols.dialects import json_or_none, token

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARK = b'"parameters"'
MAX_TOKENS = 1_000_000
BY_THE_MODEL = 422  # a container's status for a request that it does not understand


@dataclass(frozen=True, slots=True)
class Generation:
    """A generated text, as containers of DJL's LMI word it: its tokens are the numbers from 0, a word each."""

    inputs: str
    tokens: int
    finish_reason: str
    detailed: bool

    @classmethod
    def asked_for(cls, body: bytes, tokens: int, finish_reason: str | None = None) -> Self | None:
        """The generation that is asked for, ``tokens`` long where nobody says; None where it is something else.

        It ends for the reason given, else for its own. Raises HttpError.
        """
        asked = json_or_none(body) if _MARK in body else None
        if not isinstance(asked, dict) or not isinstance(parameters := asked.get("parameters"), dict):
            return None
        inputs = asked.get("inputs")
        if not isinstance(inputs, str) or not inputs:
            raise HttpError(BY_THE_MODEL, "Input validation error: `inputs` must be a string that is not empty")
        limit = _limit(parameters)
        finish_reason = finish_reason or ("length" if limit else "eos_token")
        return cls(inputs, limit or tokens, finish_reason, bool(parameters.get("details")))

    def whole(self) -> bytes:
        """The answer in one piece, with details where they were asked for."""
        content: dict[str, object] = {"generated_text": self._text()}
        return _compact({**content, "details": self._details()} if self.detailed else content)

    def line(self, index: int) -> bytes:
        """A token of the stream; the last one has the whole text and the details, asked for or not."""
        content: dict[str, object] = {"token": {"id": index, "text": token(index), "log_prob": -0.5}}
        if index == self.tokens - 1:
            content |= {"generated_text": self._text(), "details": self._details()}
        return _compact(content) + b"\n"

    def _text(self) -> str:
        return "".join(map(token, range(self.tokens)))

    def _details(self) -> dict[str, object]:
        return {"finish_reason": self.finish_reason, "generated_tokens": self.tokens, "inputs": self.inputs}


def _limit(parameters: Mapping[str, Any]) -> int | None:
    limit = parameters.get("max_new_tokens")
    if limit is None or (type(limit) is int and 1 <= limit <= MAX_TOKENS):
        return limit
    raise HttpError(
        BY_THE_MODEL, f"Input validation error: `max_new_tokens` must be from 1 to {MAX_TOKENS}. Given: {limit!r}"
    )


def _compact(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
