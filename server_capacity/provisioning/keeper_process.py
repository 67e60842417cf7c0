"""The keeper's life: it takes orders to change or make something, and undoes all when nobody holds it any more.

Each order is a line on a socket. Its end is the lifeline: that of the command closes however the command ends. A signal
that ends other processes has the keeper undo everything first. An order to make an endpoint brings a socket of its own,
the lifeline of that endpoint.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from server_capacity.provisioning.cleanup_file import CleanupFile
from server_capacity.provisioning.making import Making
from server_capacity.provisioning.messages import ChangeOrder, order_of
from server_capacity.provisioning.performing import NotDoneError, perform
from server_capacity.provisioning.restoring import restore

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS, ANSWERS = 0, 1  # descriptors
ALL_PUT_BACK, SOME_LEFT = 0, 1
"""The exit codes of a keeper that was not killed."""

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def keep() -> int:
    """The process, from its first order, which names the folder, to its exit code."""
    signalled = _heed_signals()
    import boto3  # noqa: F401 - while the command has other things to do, and before the first order waits for it

    with ExitStack() as stack:
        cleanup: CleanupFile | None = None
        makings: list[Making] = []
        accounts: dict[str, str | None] = {}
        for line, channel in _orders(signalled):
            try:
                if cleanup is None:
                    cleanup = stack.enter_context(CleanupFile.taken(Path(line["folder"])))
                elif isinstance(order := order_of(line), ChangeOrder):
                    _change(cleanup, order)
                elif channel is not None:
                    makings.append(Making(cleanup, order, channel, accounts))
                    makings[-1].start()
                answer: dict[str, str] = {}
            except (BenchmarkError, NotDoneError, OSError) as error:
                answer = {"failed": str(error)}
            with suppress(OSError):
                os.write(ANSWERS, json.dumps(answer).encode() + b"\n")
        for making in makings:
            making.end()
        for making in makings:
            making.join()
        return ALL_PUT_BACK if cleanup is None or restore(cleanup) else SOME_LEFT


def _change(cleanup: CleanupFile, order: ChangeOrder) -> None:
    """Write the undo down, then make the change. NotDoneError where it failed; it is undone with the others then."""
    number = cleanup.hold(order.what, order.undo, order.account)
    try:
        perform(order.change)
    except NotDoneError as error:
        if error.refused:
            cleanup.conclude(number, "refused")
        raise


def _orders(signalled: int) -> Iterator[tuple[dict[str, Any], socket.socket | None]]:
    """The orders as they come, each with the channel that came with it, until a signal or the command's end.

    The command sends none before the last one was answered.
    """
    orders = socket.socket(fileno=ORDERS)
    buffer, channel = b"", None
    while True:
        ready, _, _ = select.select([orders.fileno(), signalled], [], [])
        if signalled in ready:
            return
        data, descriptors, _, _ = socket.recv_fds(orders, 65536, 1)
        if not data:
            return
        if descriptors:
            channel = socket.socket(fileno=descriptors[0])
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            yield json.loads(line), channel
            channel = None


def _heed_signals() -> int:
    """A descriptor that can be read once a signal asked for the end; none of them ends this process by itself."""
    heard, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    for number in _ENDING:
        signal.signal(number, lambda *_: None)
    return heard
