"""SageMaker's response stream: tokens in AWS's event stream, a frame in each HTTP chunk."""

from __future__ import annotations

import json
from struct import pack
from typing import TYPE_CHECKING
from zlib import crc32

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED
from inference_benchmarker.embedded.http.messages import Answer
from inference_benchmarker.embedded.protocols.dialects import BY_VARIANT, SageMakerDialect, request_id
from inference_benchmarker.embedded.protocols.generation import Generation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from inference_benchmarker.embedded.http.messages import Request

EVENT_STREAM = "application/vnd.amazon.eventstream"
_TEXT = 7  # the type of a header's value


class SageMakerStreamDialect(SageMakerDialect):
    """The stream that boto3's ``invoke_endpoint_with_response_stream`` reads: a token in each part."""

    def reply(self, request: Request, sequence: int) -> PartStream:
        """A line of JSON a token where the request has parameters for a text, else as many words as configured."""
        generation = Generation.asked_for(request.body, self._tokens)
        headers = {
            **BY_VARIANT,
            "X-Amzn-SageMaker-Content-Type": "application/jsonlines" if generation else "text/plain",
            **request_id(sequence),
        }
        head = Answer(200, b"", EVENT_STREAM, headers)
        return PartStream(head, generation.tokens, generation.line) if generation else PartStream(head, self._tokens)


def _word(index: int) -> bytes:
    return f" {index}".encode() if index else b"0"


class PartStream:
    """An answer in parts: of itself the numbers from 0, a word each."""

    __slots__ = ("_part", "head", "pieces")

    def __init__(self, head: Answer, pieces: int, part: Callable[[int], bytes] = _word) -> None:
        self.head = head
        self.pieces = pieces
        self._part = part

    def events(self, piece: int) -> Sequence[bytes]:
        """A part."""
        kinds = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
        return (frame(kinds, self._part(piece)),)

    def broken(self) -> Sequence[bytes]:
        """The exception ModelStreamError."""
        kinds = {":exception-type": "ModelStreamError", ":content-type": "application/json"}
        told = {"Message": FAILED_AS_CONFIGURED, "ErrorCode": "StreamBroken"}
        return (frame({**kinds, ":message-type": "exception"}, json.dumps(told).encode()),)


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of an event stream, with the checksums of its prelude and of the whole."""
    block = b"".join(
        pack(f">B{len(name)}sBH{len(value)}s", len(name), name.encode(), _TEXT, len(value), value.encode())
        for name, value in headers.items()
    )
    prelude = pack(">II", 16 + len(block) + len(payload), len(block))
    message = prelude + pack(">I", crc32(prelude)) + block + payload
    return message + pack(">I", crc32(message))
