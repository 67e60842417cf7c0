"""The thread that alone uses a ZeroMQ socket over which a command and its agents speak."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from struct import Struct
from typing import TYPE_CHECKING, Any

import zmq

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Frames = Sequence[zmq.Frame]

_MONITORED = Struct("=Hi")  # event and value; the module of zmq that reads it loads asyncio
_READ = 1 << 16
_END_S = 1.0  # that the thread gets beyond its patience


class SocketLoop:
    """Receives on a ``socket``, which it owns with its context, and lets others send on it.

    ``take``: the frames of each message, and when it came (monotonic, ns). ``note``: each of the ``events`` of its
    connections, with its value; what came over a connection before was taken by then. ``gate``: another socket of the
    context, whose requests ``answer`` answers. An exception of any of them ends the thread and closes the socket.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        events: int,
        take: Callable[[Frames, int], None],
        note: Callable[[int, int], None],
        *,
        gate: zmq.Socket[bytes] | None = None,
        answer: Callable[[Sequence[bytes]], list[bytes]] | None = None,
    ) -> None:
        self._socket, self._gate = socket, gate
        self._monitor: zmq.Socket[bytes] = socket.get_monitor_socket(events)
        self._take, self._note, self._answer = take, note, answer
        self._to_do: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._woken, self._wake = os.pipe()
        for descriptor in (self._woken, self._wake):
            os.set_blocking(descriptor, False)
        self._writing, self._is_closed = threading.Lock(), False
        self._ending = threading.Event()
        self._patience_s = 0.0
        self._thread = threading.Thread(target=self._run, name="hosts", daemon=True)

    def start(self) -> None:
        """Begin; nothing else may use the socket from now on."""
        self._thread.start()

    def do(self, action: Callable[[], object]) -> None:
        """Have something done on the thread, where the socket may be used, after all that was to be done before."""
        self._to_do.put(action)
        self._wake_up()

    def end(self, patience_s: float) -> None:
        """Do what is left to do, and close the socket once all is sent, at the latest after so many seconds."""
        self._patience_s = patience_s
        self._ending.set()
        self._wake_up()
        if threading.current_thread() is not self._thread:
            self._thread.join(patience_s + _END_S)

    def _wake_up(self) -> None:
        with self._writing, suppress(BlockingIOError):  # it is full of calls to wake up
            if not self._is_closed:
                os.write(self._wake, b"\0")

    def _run(self) -> None:
        try:
            self._take_turns()
        finally:
            self._close()

    def _take_turns(self) -> None:
        does: dict[Any, Callable[[], None]] = {
            self._socket: self._receive,
            self._monitor: self._hear_of_connections,
            self._woken: self._do_all,
        }
        if self._gate is not None:
            does[self._gate] = self._keep_gate
        poller = zmq.Poller()
        for each in does:
            poller.register(each, zmq.POLLIN)
        while not self._ending.is_set():
            for ready, _ in poller.poll():
                does[ready]()
        self._do_all()

    def _close(self) -> None:
        self._socket.context.destroy(linger=int(1000 * self._patience_s))
        with self._writing:
            self._is_closed = True
            for descriptor in (self._woken, self._wake):
                os.close(descriptor)

    def _receive(self) -> None:
        with suppress(zmq.Again):
            while True:
                frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
                self._take(frames, time.monotonic_ns())

    def _hear_of_connections(self) -> None:
        event, value = _MONITORED.unpack(self._monitor.recv_multipart()[0])
        self._receive()
        self._note(event, value)

    def _do_all(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, _READ)
        with suppress(Empty):
            while True:
                self._to_do.get_nowait()()

    def _keep_gate(self) -> None:
        assert self._gate is not None
        assert self._answer is not None
        self._gate.send_multipart(self._answer(self._gate.recv_multipart()))
