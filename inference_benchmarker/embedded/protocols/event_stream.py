"""AWS's event stream: messages of headers and a payload, one after the other."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENT_STREAM = "application/vnd.amazon.eventstream"
_TEXT = 7  # the type of a header's value


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of an event stream, with the checksums of its prelude and of the whole."""
    block = b"".join(
        pack(f">B{len(name)}sBH{len(value)}s", len(name), name.encode(), _TEXT, len(value), value.encode())
        for name, value in headers.items()
    )
    prelude = pack(">II", 16 + len(block) + len(payload), len(block))
    message = prelude + pack(">I", crc32(prelude)) + block + payload
    return message + pack(">I", crc32(message))
