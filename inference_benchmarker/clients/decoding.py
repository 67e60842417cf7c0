"""Bodies that a server has compressed, whether it was asked to or not, as they were before: piece by piece."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_MEMBER = b"\x1f"  # a gzip member's first byte
_BLOCK = 16 * 1024  # a body is decoded by so many bytes: what follows a gzip member is copied for each member
_MOST_STEPS = 5  # as curl has it
MOST_DECODED = 256 * 2**20
"""Bytes of one body, or of one piece of a stream: a megabyte of gzip can be a gigabyte of zeros, of one more gzip a
terabyte."""


class UndecodableAnswerError(ConnectionError):
    """The answer's body is compressed in a way that is not known here, is damaged, or was cut."""


class Decoder(Protocol):
    """Takes a compressed body as it comes."""

    def decode(self, data: bytes) -> bytes:
        """The part of the body that these bytes complete. Raises UndecodableAnswerError."""

    def end(self) -> None:
        """No more comes. Raises UndecodableAnswerError where something is missing."""


def decoder_of(encoding: str) -> Decoder | None:
    """For a Content-Encoding; None where nothing is to be done. Raises UndecodableAnswerError for an unknown one."""
    names = [name.strip().lower() for name in encoding.split(",")]
    steps = [_decoder(name) for name in reversed(names) if name not in ("", "identity")]
    if not steps:
        return None
    if len(steps) > _MOST_STEPS:
        raise UndecodableAnswerError(f"the answer is encoded {len(steps)} times; at most {_MOST_STEPS} are taken back")
    return steps[0] if len(steps) == 1 else _Chain(steps)


def whole(decoder: Decoder, body: bytes) -> bytes:
    """A whole body. Raises UndecodableAnswerError."""
    found, size = [], 0
    for start in range(0, len(body), _BLOCK):
        found.append(decoder.decode(body[start : start + _BLOCK]))
        size += len(found[-1])
        if size > MOST_DECODED:
            raise _too_long()
    decoder.end()
    return b"".join(found)


class _Chain:
    """Several encodings, the one that was applied last first."""

    def __init__(self, steps: list[Decoder]) -> None:
        self._steps = steps

    def decode(self, data: bytes) -> bytes:
        for step in self._steps:
            data = step.decode(data)
        return data

    def end(self) -> None:
        for step in self._steps:
            step.end()


class _Gzip:
    """One member or several; what is no member after the first is left out, as by everybody."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP)
        self._whole = self._begun = False

    def decode(self, data: bytes) -> bytes:
        found = b""
        while data and (self._begun or not self._whole or data[:1] == _MEMBER):
            self._begun = True
            found += _decompressed(self._stream, data, "gzip")
            data = self._stream.unused_data
            if self._stream.eof:
                self._stream, self._whole, self._begun = zlib.decompressobj(_GZIP), True, False
        return found

    def end(self) -> None:
        if self._begun:
            raise UndecodableAnswerError("the answer's gzip ends in the middle")


class _Deflate:
    """With zlib's two bytes in front, as it should be, or without, as some servers send it."""

    def __init__(self) -> None:
        self._head = b""
        self._stream: Any = None

    def decode(self, data: bytes) -> bytes:
        if self._stream is None:
            self._head = data = self._head + data
            if len(data) < 2:
                return b""
            is_zlib = data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(_ZLIB if is_zlib else _RAW)
        return _decompressed(self._stream, data, "deflate")

    def end(self) -> None:
        if self._head and (self._stream is None or not self._stream.eof):
            raise UndecodableAnswerError("the answer's deflate ends in the middle")


class _Brotli:
    """By one of the two libraries, where one is installed."""

    def __init__(self) -> None:
        library = _first_of("brotli", "brotlicffi")
        if library is None:
            raise UndecodableAnswerError("the answer is encoded with br, which needs `pip install brotli`")
        self._stream = library.Decompressor()
        self._error: type[Exception] = library.error
        self._begun = False

    def decode(self, data: bytes) -> bytes:
        self._begun = self._begun or bool(data)
        try:
            found: bytes = self._stream.process(data)
        except self._error as error:
            raise UndecodableAnswerError(f"the answer's br is damaged: {error}") from error
        return found

    def end(self) -> None:
        if self._begun and not self._stream.is_finished():
            raise UndecodableAnswerError("the answer's br ends in the middle")


_DECODERS: dict[str, Callable[[], Decoder]] = {"gzip": _Gzip, "x-gzip": _Gzip, "deflate": _Deflate, "br": _Brotli}


def _decoder(name: str) -> Decoder:
    if name not in _DECODERS:
        raise UndecodableAnswerError(
            f"the answer is encoded with {name[:40]!r}; known are {', '.join(_DECODERS)}: have the server send plain"
        )
    return _DECODERS[name]()


def _decompressed(stream: Any, data: bytes, name: str) -> bytes:
    try:
        found: bytes = stream.decompress(data, MOST_DECODED)
    except zlib.error as error:
        raise UndecodableAnswerError(f"the answer's {name} is damaged: {error}") from error
    if stream.unconsumed_tail:
        raise _too_long()
    return found


def _too_long() -> UndecodableAnswerError:
    return UndecodableAnswerError(f"the answer's body is more than {MOST_DECODED >> 20} MiB when it is decoded")


def _first_of(*modules: str) -> Any:
    for module in modules:
        try:
            return import_module(module)
        except ImportError:
            continue
    return None
