"""The process in which ``running.start`` has the endpoint run: it is told on standard input what to be."""

from __future__ import annotations

import json
import socket
import sys

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.serving import serve


def main() -> None:
    """Serve until standard input ends, which it does with the parent, however that ends."""
    line = sys.stdin.readline()
    if not line:  # the parent gave up before it said what to be
        return
    handover = json.loads(line)
    sock = socket.socket(fileno=handover["socket"])
    serve(EndpointConfig(**handover["config"]), sock, lifeline=sys.stdin.fileno())


main()
