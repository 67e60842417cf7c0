"""Bodies that a server has compressed, whether it was asked to or not, as they were before: piece by piece."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from inference_benchmarker.answer_size import AnswerTooLargeError, largest_answer
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Callable

_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_MEMBER = b"\x1f"  # a gzip member's first byte
_BLOCK = 16 * 1024  # a body is decoded by so many bytes: what follows a gzip member is copied for each member
_MOST_STEPS = 5  # as curl has it
_PLAIN = ("", "identity")  # no encoding
_SIP = 64  # bytes of br at a time where the library cannot be made to stop: few of them can be megabytes


class UndecodableAnswerError(ConnectionError):
    """The answer's body is compressed in a way that is not known here, is damaged, or was cut."""


class Decoder(Protocol):
    """Takes a compressed body as it comes."""

    def decode(self, data: bytes) -> bytes:
        """The part of the body that these bytes complete. Raises UndecodableAnswerError and AnswerTooLargeError."""

    def end(self) -> None:
        """No more comes. Raises UndecodableAnswerError where something is missing."""


def decoder_of(encoding: str) -> Decoder | None:
    """For a Content-Encoding; None where nothing is to be done. Raises UndecodableAnswerError for an unknown one."""
    most = largest_answer()
    names = [name.strip().lower() for name in encoding.split(",")]
    if any(name not in _DECODERS for name in names if name not in _PLAIN):
        raise UndecodableAnswerError(
            f"the answer is encoded with {said(encoding)!r}; known are {', '.join(_DECODERS)}: "
            "make the server send it unencoded"
        )
    steps = [_DECODERS[name](_Room(most)) for name in reversed(names) if name not in _PLAIN]
    if not steps:
        return None
    if len(steps) > _MOST_STEPS:
        raise UndecodableAnswerError(f"the answer is encoded {len(steps)} times; at most {_MOST_STEPS} are decoded")
    return steps[0] if len(steps) == 1 else _Chain(steps)


class _Room:
    """The bytes that a body may still have after one of its encodings was taken back.

    A megabyte of gzip can be a gigabyte of zeros, of one more gzip a terabyte.
    """

    def __init__(self, most: int) -> None:
        self._most = self.left = most

    def take(self, decoded: bytes) -> bytes:
        """The same bytes, counted. Raises AnswerTooLargeError."""
        self.left -= len(decoded)
        if self.left < 0:
            raise AnswerTooLargeError.of_body(self._most, " when it is decoded")
        return decoded


def whole(decoder: Decoder, body: bytes) -> bytes:
    """A whole body. Raises UndecodableAnswerError and AnswerTooLargeError."""
    found = _by_blocks(decoder, body)
    decoder.end()
    return found


def _by_blocks(decoder: Decoder, data: bytes) -> bytes:
    return b"".join([decoder.decode(data[start : start + _BLOCK]) for start in range(0, len(data), _BLOCK)])


class _Chain:
    """Several encodings, the one that was applied last first."""

    def __init__(self, steps: list[Decoder]) -> None:
        self._steps = steps

    def decode(self, data: bytes) -> bytes:
        for step in self._steps:
            data = _by_blocks(step, data)
        return data

    def end(self) -> None:
        for step in self._steps:
            step.end()


class _Gzip:
    """One member or several; what is no member after the first is left out, as by everybody."""

    def __init__(self, room: _Room) -> None:
        self._room = room
        self._stream = zlib.decompressobj(_GZIP)
        self._whole = self._begun = False

    def decode(self, data: bytes) -> bytes:
        found = []
        while data and (self._begun or not self._whole or data[:1] == _MEMBER):
            self._begun = True
            found.append(_decompressed(self._stream, data, "gzip", self._room))
            data = self._stream.unused_data
            if self._stream.eof:
                self._stream, self._whole, self._begun = zlib.decompressobj(_GZIP), True, False
        return b"".join(found)

    def end(self) -> None:
        if self._begun:
            raise UndecodableAnswerError("the answer's gzip ends in the middle")


class _Deflate:
    """With zlib's two bytes in front, as it should be, or without, as some servers send it; the rest is left out."""

    def __init__(self, room: _Room) -> None:
        self._room = room
        self._head = b""
        self._stream: Any = None

    def decode(self, data: bytes) -> bytes:
        if self._stream is None:
            self._head = data = self._head + data
            if len(data) < 2:
                return b""
            is_zlib = data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(_ZLIB if is_zlib else _RAW)
        return b"" if self._stream.eof else _decompressed(self._stream, data, "deflate", self._room)

    def end(self) -> None:
        if self._head and (self._stream is None or not self._stream.eof):
            raise UndecodableAnswerError("the answer's deflate ends in the middle")


class _Brotli:
    """By one of the two libraries, where one is installed."""

    def __init__(self, room: _Room) -> None:
        self._room = room
        library = _first_of("brotli", "brotlicffi")
        if library is None:
            raise UndecodableAnswerError("the answer is encoded with br, which needs `pip install brotli`")
        self._stream = library.Decompressor()
        self._stops = hasattr(self._stream, "can_accept_more_data")  # from 1.2 on
        self._error: type[Exception] = library.error
        self._begun = False

    def decode(self, data: bytes) -> bytes:
        self._begun = self._begun or bool(data)
        if self._stops:
            return self._processed(data, output_buffer_limit=self._room.left + 1)
        return b"".join([self._processed(data[start : start + _SIP]) for start in range(0, len(data), _SIP)])

    def _processed(self, data: bytes, **limit: int) -> bytes:
        try:
            return self._room.take(self._stream.process(data, **limit))
        except self._error as error:
            raise UndecodableAnswerError(f"the answer's br is damaged: {error}") from error

    def end(self) -> None:
        if self._begun and not self._stream.is_finished():
            raise UndecodableAnswerError("the answer's br ends in the middle")


_DECODERS: dict[str, Callable[[_Room], Decoder]] = {"gzip": _Gzip, "x-gzip": _Gzip, "deflate": _Deflate, "br": _Brotli}


def _decompressed(stream: Any, data: bytes, name: str, room: _Room) -> bytes:
    try:
        return room.take(stream.decompress(data, room.left + 1))
    except zlib.error as error:
        raise UndecodableAnswerError(f"the answer's {name} is damaged: {error}") from error


def _first_of(*modules: str) -> Any:
    for module in modules:
        try:
            return import_module(module)
        except ImportError:
            continue
    return None
