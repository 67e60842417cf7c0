"""Answers compressed with gzip, as servers and proxies send them that nobody configured to do so."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.http.messages import Answer
from inference_benchmarker.embedded.protocols.dialects import Deferred

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.embedded.protocols.dialects import Stream

_GZIP = 16 + zlib.MAX_WBITS  # as zlib tells the format


def compressed(reply: Answer | Stream | Deferred) -> Answer | Stream | Deferred:
    """The same, compressed; each piece of a stream can be read when it comes."""
    if isinstance(reply, Answer):
        return _whole(reply)
    if isinstance(reply, Deferred):
        return Deferred(lambda: _whole(reply.write()))
    return _CompressedStream(reply)


def _whole(answer: Answer) -> Answer:
    return _with_encoding(replace(answer, body=gzip.compress(answer.body)))


class _CompressedStream:
    """A stream whose pieces are one gzip file."""

    __slots__ = ("_compressor", "_stream", "head", "pieces")

    def __init__(self, stream: Stream) -> None:
        self.head = _with_encoding(stream.head)
        self.pieces = stream.pieces
        self._stream = stream
        self._compressor = zlib.compressobj(wbits=_GZIP)

    def events(self, piece: int) -> Sequence[bytes]:
        """The events of a piece, in one."""
        is_last = piece == self.pieces - 1
        return self._pressed(self._stream.events(piece), zlib.Z_FINISH if is_last else zlib.Z_SYNC_FLUSH)

    def broken(self) -> Sequence[bytes]:
        """The events that report the failure, and the end."""
        return self._pressed(self._stream.broken(), zlib.Z_FINISH)

    def _pressed(self, events: Sequence[bytes], flush: int) -> Sequence[bytes]:
        return (self._compressor.compress(b"".join(events)) + self._compressor.flush(flush),)


def _with_encoding(answer: Answer) -> Answer:
    return replace(answer, headers={**answer.headers, "Content-Encoding": "gzip"})
