"""SageMaker's response stream: tokens in AWS's event stream, a frame in each HTTP chunk."""

from __future__ import annotations

import json
from struct import pack
from typing import TYPE_CHECKING
from zlib import crc32

from inference_benchmarker.demo.dialects import SageMakerDialect
from inference_benchmarker.demo.http import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.demo.http import Request

_TEXT = 7  # the type of a header's value


class SageMakerStreamDialect(SageMakerDialect):
    """What boto3's ``invoke_endpoint_with_response_stream`` reads: as many parts as configured, a token in each."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def reply(self, request: Request, sequence: int) -> PartStream:  # type: ignore[override]  # noqa: ARG002
        """A token in each part."""
        headers = {
            "x-Amzn-Invoked-Production-Variant": "AllTraffic",
            "X-Amzn-SageMaker-Content-Type": "text/plain",
            **self._request_id(sequence),
        }
        return PartStream(Answer(200, b"", "application/vnd.amazon.eventstream", headers), self._tokens)


class PartStream:
    """An answer in parts: the numbers from 0, a word each."""

    __slots__ = ("head", "pieces")

    def __init__(self, head: Answer, pieces: int) -> None:
        self.head = head
        self.pieces = pieces

    def events(self, piece: int) -> Sequence[bytes]:
        """A part."""
        text = f" {piece}" if piece else "0"
        kinds = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
        return (frame(kinds, text.encode()),)

    def broken(self) -> Sequence[bytes]:
        """The exception ModelStreamError."""
        kinds = {":exception-type": "ModelStreamError", ":content-type": "application/json"}
        told = {"Message": "The model failed, as configured.", "ErrorCode": "StreamBroken"}
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
