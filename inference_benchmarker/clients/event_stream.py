"""AWS's event stream: frames with headers, a payload and two checksums, however the bytes are cut."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, NoReturn
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.clients.connection import Connection
    from inference_benchmarker.clients.pool import Pool

_PRELUDE = Struct(">III")  # length of the frame, of its headers, and the checksum of these two
_CHECKSUM = Struct(">I")
_MOST_HEADERS, _MOST_PAYLOAD = 128 * 1024, 24 * 1024 * 1024
_PART = "PayloadPart"


class FrameReader:
    """Owns the beginning of a frame whose rest has not come yet. Work grows with the bytes, however they are cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = _PRELUDE.size  # bytes before there is anything new to see

    @property
    def between_frames(self) -> bool:
        """Tells whether what came so far is whole frames."""
        return not self._buffer

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Headers and payload of each frame that ``data`` completes. Raises botocore's ParserErrors."""
        self._buffer += data
        while len(self._buffer) >= self._needed:
            total, headers, checksum = _PRELUDE.unpack_from(self._buffer)
            _check(self._buffer[:8], checksum)
            _check_lengths(total, headers)
            if len(self._buffer) < total:
                self._needed = total
                return
            frame = bytes(self._buffer[:total])
            del self._buffer[:total]  # which moves no bytes
            self._needed = _PRELUDE.size
            _check(frame[:-4], _CHECKSUM.unpack_from(frame, total - 4)[0])
            end = _PRELUDE.size + headers
            yield _headers(frame[_PRELUDE.size : end]), frame[end:-4]


class EventStream:
    """The events of one answer, once, as boto3's ``EventStream`` gives them; owns the connection until it is read.

    Raises EventStreamError for an error that the service sends in mid-stream, urllib3's ProtocolError for a stream
    that is cut and its ReadTimeoutError for one that stands still, as boto3 does; it lets pass that the last frame is
    half, which raises ProtocolError here.
    """

    def __init__(self, pool: Pool, connection: Connection, model: Any) -> None:
        self._pool = pool
        self._connection: Connection | None = connection
        self._model = model

    def __iter__(self) -> Iterator[dict[str, Any]]:
        frames = FrameReader()
        try:
            while piece := self._read():
                for headers, payload in frames.feed(piece):
                    if event := self._event(headers, payload):
                        yield event
            if not frames.between_frames:
                _broken("The stream ended in the middle of a frame")
        finally:
            self.close()

    def close(self) -> None:
        """Give the connection back; one that was not read to its end is closed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)

    def _read(self) -> bytes:
        if self._connection is None:
            return b""
        try:
            return self._connection.read_piece()
        except OSError as error:
            _broken(error)

    def _event(self, headers: dict[str, Any], payload: bytes) -> dict[str, Any]:
        if headers.get(":event-type") == _PART and headers.get(":message-type") == "event":
            return {_PART: {"Bytes": payload}}
        return self._rare_event(headers, payload)

    def _rare_event(self, headers: dict[str, Any], payload: bytes) -> dict[str, Any]:
        """An event that is no part of the answer, in botocore's own words; empty for what its model does not know."""
        from botocore.exceptions import EventStreamError
        from botocore.parsers import EventStreamJSONParser

        status = 200 if headers.get(":message-type") == "event" else 400
        message = {"status_code": status, "headers": headers, "body": payload}
        body = self._model.output_shape.members["Body"]
        parsed: dict[str, Any] = EventStreamJSONParser().parse(message, body)
        if status == 200:
            return parsed
        raise EventStreamError(parsed, self._model.name)


def _broken(reason: Exception | str) -> NoReturn:
    from urllib3.exceptions import ProtocolError, ReadTimeoutError

    if isinstance(reason, TimeoutError):
        raise ReadTimeoutError(None, None, str(reason)) from reason  # type: ignore[arg-type]  # no pool of its own
    raise ProtocolError(str(reason)) from (reason if isinstance(reason, Exception) else None)


def _check(data: bytes | bytearray, expected: int) -> None:
    if (calculated := crc32(data)) != expected:
        from botocore.eventstream import ChecksumMismatch

        raise ChecksumMismatch(expected, calculated)


def _check_lengths(total: int, headers: int) -> None:
    payload = total - _PRELUDE.size - headers - _CHECKSUM.size
    if headers <= _MOST_HEADERS and 0 <= payload <= _MOST_PAYLOAD:
        return
    from botocore.eventstream import InvalidHeadersLength, InvalidPayloadLength

    raise InvalidHeadersLength(headers) if headers > _MOST_HEADERS else InvalidPayloadLength(payload)


@lru_cache(maxsize=64)
def _headers(block: bytes) -> dict[str, Any]:
    """The headers of a frame; those of most frames are the same, byte for byte."""
    from botocore.eventstream import EventStreamHeaderParser

    parsed: dict[str, Any] = EventStreamHeaderParser().parse(block)
    return parsed
