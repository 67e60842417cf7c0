"""Plain HTTP: a small JSON object, or a stream of small ones where the client asks for one."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED
from inference_benchmarker.embedded.http.messages import Answer, json_answer
from inference_benchmarker.embedded.protocols.dialects import EventStream, token

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.protocols.dialects import Stream

_LINES = "application/x-ndjson"
_EVENTS = "text/event-stream"


class PlainDialect:
    """The answers of a model server behind /invocations."""

    _OK = json_answer(200, {"predictions": [0.5]})

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def reply(self, request: Request, sequence: int) -> Answer | Stream:  # noqa: ARG002 - not all need all
        """The same prediction for every request; where events or lines are accepted first, as many as configured."""
        kind = re.split("[,;]", request.headers.get("accept", ""))[0].strip()
        if kind not in (_EVENTS, _LINES):
            return self._OK
        broken = _said(kind, {"error": FAILED_AS_CONFIGURED})
        return EventStream(Answer(200, b"", kind), self._tokens, partial(self._event, kind), broken)

    def failure(self, status: int, reason: str, sequence: int) -> Answer:  # noqa: ARG002 - not all need all
        """The reason as ``error``."""
        return json_answer(status, {"error": reason})

    def _event(self, kind: str, index: int) -> bytes:
        last = b"data: [DONE]\n\n" if kind == _EVENTS and index == self._tokens - 1 else b""
        return _said(kind, {"text": token(index)}) + last


def _said(kind: str, content: Mapping[str, object]) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"data: %b\n\n" % text if kind == _EVENTS else text + b"\n"
