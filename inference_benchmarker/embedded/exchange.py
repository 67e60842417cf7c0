"""An accepted request of the embedded endpoint on its way to its answer, and the alarm that says when."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.fates import Fate
from inference_benchmarker.embedded.http.messages import Answer, chunk
from inference_benchmarker.embedded.protocols.dialects import Deferred
from inference_benchmarker.system.timerfd import TimerFd
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from inference_benchmarker.embedded.aws.telemetry import Traffic
    from inference_benchmarker.embedded.http.connection import HttpConnection
    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.llm.token_job import TokenJob
    from inference_benchmarker.embedded.protocols.dialects import Stream
    from inference_benchmarker.embedded.queueing.job import Job

# Differs from every instant and from None: after it rang, whatever is set has to reach the timer.
_RANG = -1
# A timer wakes its process some tens of microseconds late: it is set early, and the rest is waited out.
_EARLY_NS = 60_000


class Exchange:
    """An accepted request on its way: what to say, and in which pieces. The queueing model says when."""

    __slots__ = (
        "_broken",
        "_pieces",
        "_reply",
        "_sent",
        "answered_ns",
        "arrival_ns",
        "connection",
        "fate",
        "job",
        "request",
        "route",
        "sequence",
        "traffic",
    )

    def __init__(
        self,
        connection: HttpConnection,
        request: Request,
        route: str,
        sequence: int,
        *,
        job: Job | TokenJob,
        reply: Answer | Stream | Deferred,
        fate: Fate,
        traffic: Traffic,
        arrival_ns: int,
    ) -> None:
        self.connection = connection
        self.request = request
        self.route = route
        self.sequence = sequence
        self.job = job
        self.traffic = traffic
        self.arrival_ns = arrival_ns
        self.answered_ns: int | None = None
        self._reply = reply
        self.fate = fate
        self._pieces = pieces_of(reply)
        self._sent = 0
        self._broken = False

    @property
    def complete(self) -> bool:
        """The server is done with it: nothing further becomes ready."""
        return self._sent == self._pieces

    @property
    def status(self) -> int:
        """The status sent; 0 where no whole answer could be."""
        if self.answered_ns is None or self.fate is Fate.CLOSE:
            return 0
        assert not isinstance(self._reply, Deferred)  # it was written
        return self._reply.status if isinstance(self._reply, Answer) else self._reply.head.status

    def send_next(self) -> None:
        """The next piece is ready: write it, if there is anybody to read it.

        With the last one, the connection is given back to its client; a request that hangs keeps it. After a stream
        broke, nothing is said, though its server may still be at work.
        """
        piece = self._sent
        self._sent += 1
        if self.connection.closed or self.fate is Fate.HANG or self._broken:
            return
        self._broken = self.fate is Fate.BREAK and piece == self._pieces // 2
        data = self._encode(piece)
        if self.fate is Fate.CLOSE and piece == self._pieces // 2:
            self.connection.write(data[: len(data) // 2])
            self.connection.drop()
            self.answered_ns = time.monotonic_ns()
            return
        self.connection.write(data)
        if self._said_all:
            self.answered_ns = time.monotonic_ns()
            self.connection.finish()

    @property
    def _said_all(self) -> bool:
        return self._broken or self.complete

    def _encode(self, piece: int) -> bytes:
        reply, connection = self._reply, self.connection
        if isinstance(reply, Deferred):
            self._reply = reply = reply.write()
        if isinstance(reply, Answer):
            return connection.encode(reply, len(reply.body))
        head = b"" if piece else connection.encode(reply.head, None)
        end = chunk(b"") if self._said_all else b""
        events = reply.broken() if self._broken else reply.events(piece)
        return head + b"".join(map(chunk, events)) + end


def pieces_of(reply: Answer | Stream | Deferred) -> int:
    """The number of pieces in which it leaves."""
    return 1 if isinstance(reply, (Answer, Deferred)) else reply.pieces


class Alarm:
    """Calls ``ring`` at an instant of the monotonic clock, with a timerfd to some tens of microseconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._set_for: int | None = None
        self._timer = TimerFd() if TimerFd.available else None
        self._handle: asyncio.TimerHandle | None = None
        if self._timer:
            loop.add_reader(self._timer.fileno(), self._fire)

    def set(self, instant_ns: int | None) -> None:
        """Ring then and at no other time; None: not at all."""
        if instant_ns == self._set_for:
            return
        self._set_for = instant_ns
        if self._timer:
            if instant_ns is None:
                self._timer.disarm()
            else:
                self._timer.arm(instant_ns - _EARLY_NS)
            return
        if self._handle:
            self._handle.cancel()
        # The loop's clock is the monotonic one, in seconds.
        self._handle = None if instant_ns is None else self._loop.call_at(instant_ns / NS, self._fire)

    def close(self) -> None:
        """Never ring again."""
        self.set(None)
        if self._timer:
            self._loop.remove_reader(self._timer.fileno())
            self._timer.close()

    def _fire(self) -> None:
        wanted = self._set_for or 0
        if wanted - time.monotonic_ns() > _EARLY_NS:
            return  # set for a later instant after the timer went off; it will go off again
        while time.monotonic_ns() < wanted:
            pass
        self._set_for = _RANG
        self._ring()
