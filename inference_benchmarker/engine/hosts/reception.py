"""The place where hosts arrive that connect by themselves, each with a key of its own; ``dialling`` is their side."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import zmq

from inference_benchmarker.engine.hosts.socket_loop import SocketLoop
from inference_benchmarker.engine.hosts.transport import LONGEST, NoMessageError, parsed
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.hosts.host_keys import Gatekeeper
    from inference_benchmarker.engine.hosts.socket_loop import Frames
    from inference_benchmarker.engine.hosts.transport import Message, Said

_ZAP = "inproc://zeromq.zap.01"
_CLOSING_S = 1.0


@dataclass(slots=True)
class _Guest:
    """A host that has arrived, or is waited for.

    ``peer``: its address on the socket, and its connection. ``came``: what it said before anybody asked for it,
    ``to_send``: what was to be said before it came.
    """

    peer: tuple[bytes, int] | None = None
    came: list[tuple[Message, int]] = field(default_factory=list)
    to_send: list[Message | Said] = field(default_factory=list)
    take: Callable[[Message, int], None] | None = None
    on_end: Callable[[], None] = lambda: None


class Reception:
    """Listens at an ``address``, as ``tcp://ADDRESS:PORT``, for the hosts whose keys it has, and hears nobody else.

    Of two that come with one key the first is heard, and the second is let go. BenchmarkError where it cannot listen.
    """

    def __init__(self, address: str, gatekeeper: Gatekeeper) -> None:
        self._names = gatekeeper.names
        self._guests = {name: _Guest() for name in gatekeeper.names}
        self._unheard: set[tuple[bytes, int]] = set()
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        gate = context.socket(zmq.REP)
        gate.bind(_ZAP)
        self._socket = context.socket(zmq.ROUTER)
        gatekeeper.keys.protect(self._socket)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LONGEST)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.IPV6, int("[" in address))
        try:
            self._socket.bind(address)
        except zmq.ZMQError as error:
            context.destroy(linger=0)
            shown = address.removeprefix("tcp://")
            raise BenchmarkError(
                f"--listen {shown} cannot be used ({error}).", "Give an address of this host, and a port that is free."
            ) from None
        answer = gatekeeper.keys.answer
        self._loop = SocketLoop(self._socket, zmq.Event.DISCONNECTED, self._take, self._note, gate=gate, answer=answer)
        self._loop.start()

    def way_to(self, name: str) -> DialledTransport:
        """The way to a host, which is there once the host has come."""
        return DialledTransport(name, self)

    def admit(self, name: str, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        """Hand over what a host says, and what it has said before."""

        def admit() -> None:
            guest = self._guests[name]
            guest.take, guest.on_end = take, on_end
            for message, at in guest.came:
                take(message, at)

        self._loop.do(admit)

    def dismiss(self, name: str) -> None:
        """Expect the host anew; its connection, where there is one, is heard no more."""
        self._loop.do(lambda: self._free(name))

    def send(self, name: str, message: Message | Said) -> None:
        """Send a host a message; one that has not come yet gets it then."""

        def send() -> None:
            guest = self._guests[name]
            if guest.peer is None:
                guest.to_send.append(message)
            else:
                self._send(guest.peer, message)

        self._loop.do(send)

    def close(self) -> None:
        """Listen no more."""
        self._loop.end(_CLOSING_S)

    def _send(self, peer: tuple[bytes, int], message: Message | Said) -> None:
        said = message() if callable(message) else message
        self._socket.send_multipart([peer[0], json.dumps(said).encode()])

    def _take(self, frames: Frames, at: int) -> None:
        """Take a message of whoever has one of the keys."""
        name = self._names[int(frames[-1].get("User-Id"))]
        guest = self._guests[name]
        peer = (frames[0].bytes, int(frames[-1].get(zmq.SRCFD)))
        if guest.peer is None and peer not in self._unheard:
            guest.peer = peer
            for message in guest.to_send:
                self._send(peer, message)
        if guest.peer != peer:
            if peer not in self._unheard:
                self._unheard.add(peer)
                self._send(peer, {"do": "close"})
            return
        try:
            self._hand_over(guest, parsed(frames[-1].bytes), at)
        except NoMessageError:  # what speaks otherwise is no agent: it is as if it had left
            self._free(name).on_end()

    def _hand_over(self, guest: _Guest, message: Message, at: int) -> None:
        if guest.take is None:
            guest.came.append((message, at))
        else:
            guest.take(message, at)

    def _note(self, event: int, value: int) -> None:  # noqa: ARG002 - it hears of one event alone
        """A connection has ended; ``value`` is its descriptor."""
        for name, guest in list(self._guests.items()):
            if guest.peer is not None and guest.peer[1] == value:
                self._free(name).on_end()
        self._unheard = {peer for peer in self._unheard if peer[1] != value}

    def _free(self, name: str) -> _Guest:
        """Expect a host anew; the one that was there is heard no more."""
        guest, self._guests[name] = self._guests[name], _Guest()
        if guest.peer is not None:
            self._unheard.add(guest.peer)
        return guest


class DialledTransport:
    """The connection that a host has opened, or will; see ``Transport``."""

    mend = "start `benchmark hosts join` of this version there, from the same image if it is a container"

    def __init__(self, name: str, reception: Reception) -> None:
        self._name = name
        self._reception = reception

    def start(self, take: Callable[[Message, int], None], on_end: Callable[[], None]) -> None:
        """Hear the host from now on."""
        self._reception.admit(self._name, take, on_end)

    def send(self, message: Message | Said) -> None:
        """Send a message; one that comes before the host waits for it."""
        self._reception.send(self._name, message)

    def lead_here(self, path: str) -> str | None:  # noqa: ARG002 - its workers come by TCP as it does
        """There is no socket there."""
        return "it connects by TCP, and so must its workers"

    def knock(self, path: str, on_answer: Callable[[], None]) -> None:
        """There is no other way to it."""

    def words(self) -> list[str]:
        """Nothing: a way that the host opens prints its words there."""
        return []

    def close(self, patience_s: float) -> None:  # noqa: ARG002 - its agent closed it, or is left to its lease
        """Hear it no more."""
        self._reception.dismiss(self._name)
