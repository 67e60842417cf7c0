"""The beginning of what a server sent, as an error shows it."""

from inference_benchmarker.words.redact import beginning

_LOOKED_AT = 64 << 10


def shown(data: bytes | bytearray | memoryview, limit: int) -> str:
    """At most ``limit`` characters of it. A server may send a key back: none is cut in half, so that it is found."""
    return beginning(bytes(data[:_LOOKED_AT]).decode("utf-8", "replace"), limit)
