"""The cache of the embedded endpoint: the bodies that it has seen last. Pure."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b


class BodyCache:
    """The last ``size`` different bodies, the least recently seen of which goes first; 0: none.

    A request whose body is there is served ``speedup`` times as fast.
    ``lookups`` and ``hits`` count the requests that were accepted, and those among them whose body was there.
    """

    def __init__(self, size: int, speedup: float) -> None:
        self.lookups = 0
        self.hits = 0
        self._size = size
        self._part = 1 / speedup
        self._digests: OrderedDict[bytes, None] = OrderedDict()

    def digest(self, body: bytes) -> bytes:
        """The name under which a body is kept."""
        return blake2b(body, digest_size=16).digest() if self._size else b""

    def has(self, body: bytes) -> bool | None:
        """Tells whether a body is there; None without a cache."""
        return self.digest(body) in self._digests if self._size else None

    def part(self, digest: bytes) -> float:
        """The part of its service that a request with this body takes."""
        return self._part if digest in self._digests else 1.0

    def keep(self, digest: bytes) -> None:
        """A request with this body was accepted: it is the most recent one from now on."""
        if not self._size:
            return
        self.lookups += 1
        if digest in self._digests:
            self.hits += 1
            self._digests.move_to_end(digest)
            return
        if len(self._digests) >= self._size:
            self._digests.popitem(last=False)
        self._digests[digest] = None
