"""The socket that the embedded endpoint answers on."""

from __future__ import annotations

import socket

from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.system.host import LOOPBACK, loopback_problems

BACKLOG = 4096


def listen(port: int = 0, host: str = LOOPBACK) -> socket.socket:
    """A listening socket; port 0 is any free one. Raises BenchmarkError where it cannot be had."""
    refuse(loopback_problems() if host == LOOPBACK else [])  # one would listen there, and nobody could come
    # asyncio sends without delay only on sockets whose protocol is named
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise BenchmarkError(
            f"The endpoint cannot listen on port {port} of {host}: {reason}.",
            "Give another port, or 0 for any free one.",
        ) from error
    return sock
