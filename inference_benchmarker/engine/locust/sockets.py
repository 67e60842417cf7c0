"""The two sockets of Locust's runners, with the wave's keys: the primary's and a worker's.

Locust makes its sockets itself and binds or connects them at once, so these classes stand in for its own. Nothing but
a message of one of the wave's workers passes through the primary's; it carries the worker's number as ``sender``.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import partial
from struct import Struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gevent
import locust.runners
import zmq.green as zmq
from gevent.event import Event
from locust.exception import RPCError, RPCSendError
from locust.rpc import zmqrpc
from locust.rpc.protocol import Message
from zmq import Socket  # which blocks the process where it waits

from inference_benchmarker.engine.locust.runtime import ARMED, BATCH, READY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.engine.locust.zmq_keys import PrimaryKeys, WorkerKeys

_FAILED = zmq.Event.HANDSHAKE_FAILED_AUTH | zmq.Event.HANDSHAKE_FAILED_NO_DETAIL | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
_MONITORED = Struct("=Hi")  # event and value; the module of zmq that reads it loads asyncio
_ZAP = "inproc://zeromq.zap.01"
_READABLE = 1  # to gevent's loop
_IDLE_S = 30  # as Locust's own socket

# What a worker may say. "quit" is not among it: a worker's end is seen by the process that started it.
_WORDS = frozenset(
    ("client_ready", "client_stopped", "exception", "heartbeat", "logs", "spawning", "spawning_complete", "stats")
) | {READY, ARMED, BATCH}

logger = logging.getLogger(__name__)


def listen_with(keys: PrimaryKeys, on_connection: Callable[[Visitors], None], also: str | None = None) -> None:
    """Have Locust's master listen on a ``PrimarySocket``."""
    locust.runners.rpc = SimpleNamespace(Server=partial(PrimarySocket, keys, on_connection, also))


def connect_with(keys: WorkerKeys, address: str) -> None:
    """Have Locust's worker connect through a ``WorkerSocket`` to an address in ZeroMQ's form."""
    locust.runners.rpc = SimpleNamespace(Client=partial(WorkerSocket, keys, address))


class ListenError(RPCError):
    """The other address of the primary cannot be had."""

    def __init__(self, address: str, error: zmq.ZMQError) -> None:
        super().__init__(os.strerror(error.errno or 0))
        self.address = address


class WorkerSocket(zmqrpc.Client):
    """Speaks with the primary whose key it has, and with nobody else."""

    def __init__(self, keys: WorkerKeys, address: str, _host: str, _port: int, identity: str) -> None:
        zmqrpc.BaseSocket.__init__(self, zmq.DEALER, ipv4_only="[" not in address)
        keys.protect(self.socket)
        self.socket.setsockopt(zmq.IDENTITY, identity.encode())
        self.socket.connect(address)


class PrimarySocket(zmqrpc.Server):
    """Hears the workers whose keys it has, and nobody else. ``port`` 0 is any free one; ``also``: another address.

    To wake up costs more than to read a report. So it reads until nothing is left, and then lets the messages of many
    workers gather for some milliseconds; that is why it is no socket of ``zmq.green``, which wakes for each of them.

    Raises RPCError, with the system's reason, where the port cannot be had; ListenError of the other address.
    """

    def __init__(
        self, keys: PrimaryKeys, on_connection: Callable[[Visitors], None], also: str | None, host: str, port: int
    ) -> None:
        context: zmq.Context[Any] = zmq.Context()
        self.socket = context.socket(zmq.ROUTER, socket_class=Socket)
        self.socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        self.socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, _IDLE_S)
        self._news = Event()
        self._watcher = gevent.get_hub().loop.io(self.socket.FD, _READABLE)
        self._gathering_s = gathering_s(len(keys.workers))
        gate = context.socket(zmq.REP)
        gate.bind(_ZAP)
        gevent.spawn(_keep_gate, gate, keys)
        keys.protect(self.socket)
        self.socket.setsockopt(zmq.ROUTER_HANDOVER, 1)  # else a worker that comes again is ignored while its old
        self.visitors = Visitors(self.socket, len(keys.workers), on_connection)  # connection lingers
        try:
            self.socket.bind(f"tcp://{host}:{port}")
            self.port = self.visitors.port = int(self.socket.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])
        except zmq.ZMQError as error:
            raise RPCError(os.strerror(error.errno or 0)) from error
        self.also = None if also is None else self._bound_to(also)

    def _bound_to(self, address: str) -> str:
        """The address as others connect to it, once the socket is bound to it as well; ListenError where it cannot."""
        try:
            self.socket.setsockopt(zmq.IPV6, int("[" in address))
            self.socket.bind(address)
        except zmq.ZMQError as error:
            raise ListenError(address, error) from error
        return str(self.socket.getsockopt_string(zmq.LAST_ENDPOINT))

    def recv_from_client(self) -> tuple[str, Message]:
        """The next message; what is none is logged and left, since an exception would end Locust's listener."""
        while True:
            try:
                frames = self._next()
            except zmq.ZMQError as error:
                raise RPCError("ZMQ network broken") from error
            try:
                return _read(frames)
            except Exception as error:
                logger.warning("a worker sent something that is not a message: %r", error)

    def _next(self) -> Sequence[zmq.Frame]:
        """The next message's frames: one that is there, or that gathers, or else the first to come."""
        with suppress(zmq.Again):
            return self._taken()
        gevent.sleep(self._gathering_s)
        while True:
            self._news.clear()
            with suppress(zmq.Again):
                return self._taken()
            self._watcher.start(self._news.set)  # for this wait alone: it would go on telling of what is not read yet
            self._news.wait()
            self._watcher.stop()

    def _taken(self) -> Sequence[zmq.Frame]:
        frames: list[zmq.Frame] = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
        return frames

    def send_to_client(self, msg: Message) -> None:
        """Send a message to the worker whose name it has; one that is not there misses it."""
        try:
            self.socket.send_multipart([msg.node_id.encode(), msg.serialize()])
        except zmq.ZMQError as error:
            raise RPCSendError("ZMQ sent failure") from error
        self._news.set()  # to send takes up ZeroMQ's news, too, and then whoever sleeps does not get them


def gathering_s(workers: int) -> float:
    """Seconds for which messages may gather before they are read: none with few workers, 50 ms with 50 or more."""
    return min(workers // 10, 5) / 100


class Visitors:
    """Counts who came to a ``port``; ``on_connection`` is called after each change."""

    def __init__(self, socket: zmq.Socket[Any], workers: int, on_connection: Callable[[Visitors], None]) -> None:
        self.port = 0
        self._workers = workers
        self._on_connection = on_connection
        self._accepted = self._admitted = self._failed = 0
        self._monitor = socket.get_monitor_socket(zmq.Event.ACCEPTED | zmq.Event.HANDSHAKE_SUCCEEDED | _FAILED)
        gevent.spawn(self._follow)

    @property
    def foreign(self) -> int:
        """Connections without a key of this wave; one that may still turn out to be a worker's is not counted yet."""
        return max(self._failed, self._accepted - max(self._workers, self._admitted))

    def _follow(self) -> None:
        while True:
            event, _ = _MONITORED.unpack(self._monitor.recv_multipart()[0])
            self._take(event)
            self._on_connection(self)

    def _take(self, event: int) -> None:
        self._accepted += event == zmq.Event.ACCEPTED
        self._admitted += event == zmq.Event.HANDSHAKE_SUCCEEDED
        self._failed += bool(event & _FAILED)  # not every kind of junk is reported


def _keep_gate(gate: zmq.Socket[Any], keys: PrimaryKeys) -> None:
    while True:
        gate.send_multipart(keys.answer(gate.recv_multipart()))


def _read(frames: Sequence[zmq.Frame]) -> tuple[str, Message]:
    """A worker's message. Whatever is wrong with it is an exception."""
    address, body = frames
    message = Message.unserialize(body.buffer)  # a batch is large: it is copied once
    message.sender = int(frames[-1].get("User-Id"))
    if message.type not in _WORDS or message.node_id.encode() != address.bytes:
        raise ValueError(f"{message.type!r} of {message.node_id!r} may not come from worker {message.sender}")
    return message.node_id, message
