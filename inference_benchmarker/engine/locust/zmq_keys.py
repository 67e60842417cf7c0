"""The keys of those who may speak on the primary's socket: ZeroMQ's CURVE in both directions, new for each wave.

The primary and each worker have a key pair of their own. They get it, and the public keys of those they may speak
with, through their standard input. Whoever has no such key cannot say a word to either side.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import zmq
from zmq.utils import z85

from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Sequence

DOMAIN = b"wave"
HANDSHAKE_MS = 5_000  # a connection that has not shown its key by then is closed
LARGEST_MESSAGE = 1 << 28  # bytes; far above any batch, and no stranger can make the receiver keep more
_BACKLOG = 1_024  # connections that wait to be accepted: all workers may come at once
_MECHANISM, _KEY_BYTES = b"CURVE", 32


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A public key and its secret, in ZeroMQ's text form."""

    public: str
    secret: str = field(repr=False)

    @classmethod
    def make(cls) -> Self:
        """A new one. Raises BenchmarkError where ZeroMQ was built without CURVE."""
        try:
            public, secret = zmq.curve_keypair()
        except zmq.ZMQError as error:
            raise BenchmarkError(
                f"This pyzmq cannot encrypt ({error}).", "Install one of its own wheels: pip install --upgrade pyzmq."
            ) from None
        return cls(public.decode(), secret.decode())


@dataclass(frozen=True, slots=True)
class PrimaryKeys:
    """The primary's keys: its own pair, and the public key of each worker, by the worker's number."""

    own: KeyPair
    workers: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The keys as strings."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The keys that ``to_json`` described."""
        return cls(KeyPair(**data["own"]), tuple(data["workers"]))

    def protect(self, server: zmq.Socket[Any]) -> None:
        """Let a socket that is not bound yet speak with the workers alone; ``answer`` must be asked on its context."""
        server.setsockopt(zmq.CURVE_SERVER, 1)
        server.setsockopt_string(zmq.CURVE_SECRETKEY, self.own.secret)
        server.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
        server.setsockopt(zmq.BACKLOG, _BACKLOG)
        _bound(server)

    def answer(self, request: Sequence[bytes]) -> list[bytes]:
        """The answer to a question of ZeroMQ's authentication protocol (its RFC 27): may this key speak, and as whom.

        A worker's messages carry its number as their ``User-Id``.
        """
        number = self._worker_of(request)
        verdict = (b"400", b"not of this wave", b"") if number is None else (b"200", b"", str(number).encode())
        return [*request[:2], *verdict, b""]

    def _worker_of(self, request: Sequence[bytes]) -> int | None:
        if len(request) != 7 or (request[2], request[5], len(request[6])) != (DOMAIN, _MECHANISM, _KEY_BYTES):
            return None
        public = z85.encode(request[6]).decode()
        return self.workers.index(public) if public in self.workers else None


@dataclass(frozen=True, slots=True)
class WorkerKeys:
    """A worker's keys: its own pair and the primary's public key."""

    own: KeyPair
    primary: str

    def to_json(self) -> dict[str, Any]:
        """The keys as strings."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The keys that ``to_json`` described."""
        return cls(KeyPair(**data["own"]), data["primary"])

    def protect(self, client: zmq.Socket[Any]) -> None:
        """Let a socket that is not connected yet speak with the primary alone."""
        client.setsockopt_string(zmq.CURVE_SERVERKEY, self.primary)
        client.setsockopt_string(zmq.CURVE_PUBLICKEY, self.own.public)
        client.setsockopt_string(zmq.CURVE_SECRETKEY, self.own.secret)
        _bound(client)


def make_keys(workers: int) -> tuple[PrimaryKeys, list[WorkerKeys]]:
    """The keys of one wave."""
    primary, own = KeyPair.make(), [KeyPair.make() for _ in range(workers)]
    return PrimaryKeys(primary, tuple(pair.public for pair in own)), [WorkerKeys(pair, primary.public) for pair in own]


def _bound(socket: zmq.Socket[Any]) -> None:
    """Bound what a stranger can take up."""
    socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    socket.setsockopt(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
