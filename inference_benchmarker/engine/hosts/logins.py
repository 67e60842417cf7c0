"""The logins that a command holds: one a host, which its waves use one after the other.

A host that connects by itself counts as logged in once it is there.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.link import Link
from inference_benchmarker.engine.hosts.protocol import SOCKET
from inference_benchmarker.engine.hosts.ssh import SshTransport
from inference_benchmarker.engine.processes.scratch import place_of_sockets, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.engine.hosts.reception import Reception
    from inference_benchmarker.engine.hosts.transport import Transport

KEEP_S = 0.1


class Logins:
    """Links to hosts by name. A thread renews their leases, between waves too.

    ``socket``: where the primary of a wave listens, and where the socket on each host leads to.
    """

    def __init__(self) -> None:
        self._links: dict[tuple[str, bool], Link] = {}
        self._holding = ExitStack()
        self._socket: Path | None = None
        self._reception: Reception | None = None
        self._over = threading.Event()
        self._renewing = threading.Thread(target=self._renew_all, name="leases", daemon=True)

    @property
    def socket(self) -> Path:
        """The path of the socket, in a folder of the user's own."""
        if self._socket is None:
            self._socket = self._holding.enter_context(scratch_folder("benchmark-", place_of_sockets())) / SOCKET
        return self._socket

    def receive(self, names: Sequence[str], keys: Path, address: str) -> None:
        """Listen for hosts that connect by themselves, from now on. BenchmarkError where that cannot be."""
        from inference_benchmarker.engine.hosts.host_keys import read_gatekeeper
        from inference_benchmarker.engine.hosts.reception import Reception

        gatekeeper = read_gatekeeper(keys, names)
        if self._reception is None:
            self._reception = Reception(address, gatekeeper)

    def link(self, name: str, *, needs_socket: bool) -> Link:
        """The link to a host: the one there is, or a login that begins now."""
        key = (name, needs_socket)
        if key not in self._links:
            link = Link(name, self._way_to(name, needs_socket=needs_socket), needs_socket=needs_socket)
            self._links = {**self._links, key: link}
            link.open()
        if not self._renewing.is_alive():
            self._renewing.start()
        return self._links[key]

    def _way_to(self, name: str, *, needs_socket: bool) -> Transport:
        if self._reception is not None:
            return self._reception.way_to(name)
        return SshTransport(name, self.socket if needs_socket else None)

    def end(self, links: Iterable[Link]) -> None:
        """Close these links, all at the same time."""
        ending = list(links)
        threads = [threading.Thread(target=link.close, name="closing") for link in ending]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._links = {key: link for key, link in self._links.items() if link not in ending}

    def close(self) -> None:
        """Close every link."""
        self.end(self._links.values())
        self._over.set()
        if self._renewing.is_alive():
            self._renewing.join()
        if self._reception is not None:
            self._reception.close()
        self._holding.close()

    def _renew_all(self) -> None:
        while not self._over.wait(KEEP_S):
            for link in self._links.values():  # a dictionary that nobody changes: another one takes its place
                link.keep()


_HELD: ContextVar[Logins | None] = ContextVar("held", default=None)


@contextmanager
def keeping_logins() -> Iterator[Logins]:
    """The logins that are held over every wave of this block; within another such block they are those of that one."""
    if (held := _HELD.get()) is not None:
        yield held
        return
    logins = Logins()
    token = _HELD.set(logins)
    try:
        yield logins
    finally:
        _HELD.reset(token)
        logins.close()
