"""Strangers at the primary's port."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import zmq

from tests.faults.fault import EVERYTHING, THREE_S, Ending, Fault, Stage
from tests.strangers import JUNK, RAW, flood, forged_batches, port_of, raw_connection, say, stray_locust_worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench import Running


def attacked(attack: Callable[[Stage, int, ExitStack], object]) -> Callable[[Stage], Ending]:
    """A wave to whose port somebody speaks."""

    def play(stage: Stage) -> Ending:
        with stage.server() as asked, ExitStack() as open_until_the_end:
            running: Running = stage.start(*THREE_S, target=asked.url)
            port = port_of(running)
            asked.wait_for(10, running)
            attack(stage, port, open_until_the_end)
            return Ending(running.finish(), asked.arrived())

    return play


def stray(stage: Stage, port: int, until: ExitStack) -> None:
    """Somebody else's Locust worker."""
    until.enter_context(stray_locust_worker(stage.folder, port))


def forging(stage: Stage, port: int, until: ExitStack) -> None:
    """Records that nobody sent, messages that are none, and bytes that are no messages."""
    context = until.enter_context(zmq.Context())
    until.callback(context.destroy, linger=0)
    say(context, port, *JUNK, *forged_batches(24))
    for data in RAW:
        until.enter_context(raw_connection(port, data))


def flooding(stage: Stage, port: int, until: ExitStack) -> None:
    """5,000 connections."""
    until.enter_context(flood(port))


PORT = (
    Fault(
        "stray-locust-worker",
        "another user's `locust --worker` is started with the wave's port",
        f"{EVERYTHING}; it is reported",
        "nothing",
        0,
        attacked(stray),
        slow=True,
    ),
    Fault(
        "forged-messages",
        "another program sends forged records and broken messages to the wave's port",
        f"{EVERYTHING}; it is reported",
        "nothing",
        0,
        attacked(forging),
        slow=True,
        says="Connections of other programs to port",
    ),
    Fault(
        "flood",
        "another program opens 5,000 connections to the wave's port",
        EVERYTHING,
        "nothing",
        0,
        attacked(flooding),
        slow=True,
    ),
)
