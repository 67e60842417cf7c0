"""Serving the embedded endpoint in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.endpoint import Endpoint
from inference_benchmarker.embedded.listening import BACKLOG
from inference_benchmarker.system.host import raise_descriptor_limit

if TYPE_CHECKING:
    import socket

    from inference_benchmarker.embedded.config import EndpointConfig


def serve(config: EndpointConfig, sock: socket.socket, lifeline: int | None = None) -> None:
    """Serve on a listening socket until SIGTERM or SIGINT, or until the descriptor ``lifeline`` ends.

    Must run in the main thread. Raises the process's limit of open descriptors as far as it may.
    """
    raise_descriptor_limit()
    asyncio.run(_serve(config, sock, lifeline))


async def _serve(config: EndpointConfig, sock: socket.socket, lifeline: int | None) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if lifeline is not None:
        loop.add_reader(lifeline, _watch_lifeline, lifeline, stopped)
    endpoint = Endpoint(config, loop)
    server = await loop.create_server(endpoint.connect, sock=sock, backlog=BACKLOG)
    gc.freeze()  # what lives for ever need not be walked again and again while answers are due
    await stopped.wait()
    server.close()
    endpoint.close()
    if lifeline is not None:
        loop.remove_reader(lifeline)


def _watch_lifeline(lifeline: int, stopped: asyncio.Event) -> None:
    if not os.read(lifeline, 4096):
        stopped.set()
