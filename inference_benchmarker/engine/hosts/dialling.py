"""A host that connects by itself to a command, and offers it an agent; ``reception`` is the command's side."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import zmq

from inference_benchmarker.engine.hosts.agent import serve
from inference_benchmarker.engine.hosts.socket_loop import SocketLoop
from inference_benchmarker.engine.hosts.transport import LONGEST, NoMessageError, parsed
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.hosts.socket_loop import Frames
    from inference_benchmarker.engine.hosts.transport import Message, Said
    from inference_benchmarker.engine.locust.zmq_keys import WorkerKeys

AGAIN_MS = 200  # after which a connection that fails is tried again: the command may begin later
POLL_S = 0.05
_LET_IN, _REFUSED = zmq.Event.HANDSHAKE_SUCCEEDED, zmq.Event.HANDSHAKE_FAILED_AUTH
_STRANGE = zmq.Event.HANDSHAKE_FAILED_NO_DETAIL | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
_BY_OTHERS = "the other side has other keys than --host-keys, or is no `benchmark` that waits for hosts"


def join(address: str, keys: WorkerKeys, patience_s: float) -> None:
    """Offer this host to the command that listens at ``ADDRESS:PORT``, until that needs it no more.

    Raises BenchmarkError where the command has not let it in within so many seconds.
    """
    dialled = _DialledLines(address, keys)
    try:
        dialled.await_entry(patience_s)
    except BaseException:
        dialled.end(0)
        raise
    serve(dialled)


class _DialledLines:
    """The ``Lines`` of an agent whose host has opened the connection. One that has ended is not opened again."""

    def __init__(self, address: str, keys: WorkerKeys) -> None:
        self._address = address
        self._take: Callable[[Message, int], None] | None = None
        self._on_end: Callable[[], None] = lambda: None
        self._to_send: list[Message | Said] = []
        self._happened = 0  # the events of the connection so far
        self._is_let_in, self._has_ended = threading.Event(), False
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = context.socket(zmq.DEALER)
        keys.protect(self._socket)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LONGEST)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, AGAIN_MS)
        self._socket.setsockopt(zmq.IPV6, int("[" in address))
        events = _LET_IN | _REFUSED | _STRANGE | zmq.Event.DISCONNECTED
        self._loop = SocketLoop(self._socket, events, self._receive, self._note)
        self._socket.connect(f"tcp://{address}")
        self._loop.start()

    def await_entry(self, patience_s: float) -> None:
        """Until the command has let it in."""
        deadline = time.monotonic() + patience_s
        while not self._is_let_in.wait(POLL_S):
            if self._happened & _REFUSED:
                raise BenchmarkError(
                    f"{self._address} does not let this host in: it does not know the key of --host-keys."
                )
            if time.monotonic() > deadline:
                why = _BY_OTHERS if self._happened & _STRANGE else "nothing answers there"
                raise BenchmarkError(
                    f"{self._address} has not let this host in within {patience_s:g} s (--join-timeout): {why}."
                )

    def start(self, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        """Begin to hear and to speak."""

        def start() -> None:
            self._take, self._on_end = take, on_end
            for message in self._to_send:
                self._send(message)
            if self._has_ended:
                on_end()

        self._loop.do(start)

    def send(self, message: Message | Said) -> None:
        """Send a message after those before it."""
        self._loop.do(lambda: self._to_send.append(message) if self._take is None else self._send(message))

    def end(self, patience_s: float) -> None:
        """Send what is left, for so many seconds at the most, and close the connection."""
        self._loop.end(patience_s)

    def _send(self, message: Message | Said) -> None:
        if self._has_ended:  # a socket without a connection would wait for another one
            return
        said = message() if callable(message) else message
        self._socket.send(json.dumps(said).encode())

    def _receive(self, frames: Frames, at: int) -> None:
        if self._take is None or self._has_ended:
            return
        try:
            self._take(parsed(frames[-1].bytes), at)
        except NoMessageError:
            self._end()

    def _note(self, event: int, value: int) -> None:  # noqa: ARG002 - it has one connection
        self._happened |= event
        if event == _LET_IN:
            self._is_let_in.set()
        elif event == zmq.Event.DISCONNECTED and self._is_let_in.is_set():
            self._end()

    def _end(self) -> None:
        """It is over: what follows on a new connection would not be what came before it."""
        self._has_ended = True
        with suppress(zmq.ZMQError):
            self._socket.disconnect(f"tcp://{self._address}")
        self._on_end()
