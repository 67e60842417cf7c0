"""The part of Locust that primary and workers share. Importing this patches the process, so it comes first there.

Nothing from the user's ``LOCUST_*`` variables, ``locust.conf`` or ``pyproject.toml`` reaches Locust: the
options are its defaults, parsed from an empty command line without configuration files.
"""

from __future__ import annotations

import functools
import logging
import socket
from typing import TYPE_CHECKING

import gevent
import locust.argument_parser
import locust.runners
from locust import User, task
from locust.argument_parser import get_empty_argument_parser, get_parser, setup_parser_arguments

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

# In the order of a wave: a worker is READY once it has loaded its target, and ARMED once it could fire as START says;
# at GO, which all workers' ARMED precede, it does.
READY, START, ARMED, GO, CHANGE, STOP, BATCH, ACK = (
    f"wave_{name}" for name in ("ready", "start", "armed", "go", "change", "stop", "batch", "ack")
)

# A worker whose invoke blocks the event loop is late, not gone: only its process's end makes it lost.
locust.runners.HEARTBEAT_LIVENESS = 24 * 3600
locust.runners.MASTER_HEARTBEAT_TIMEOUT = 24 * 3600
# Before a wave Locust would make a whole parser for each of its options to see which of them are a user's own; and at
# its end, for a debug line on who ended it, look through the source of every loaded module: a tenth of a second each.
locust.argument_parser.default_args_dict = functools.cache(locust.argument_parser.default_args_dict)
locust.runners.inspect = None


class WaveUser(User):
    """The one Locust user of each worker: alive while the bucket has arrivals; requests are greenlets of its pool."""

    abstract = False

    @task
    def hold(self) -> None:
        """Stay until the wave is over."""
        gevent.get_hub().switch()


def options(host: str | None = None, *, custom: bool = False) -> Namespace:
    """Locust's default options; ``custom`` adds those that a Locust file's own listener defines."""
    if custom:
        parser = get_parser(default_config_files=[])
    else:
        parser = get_empty_argument_parser(default_config_files=[])
        setup_parser_arguments(parser)
    parsed: Namespace = parser.parse_args([])
    parsed.headless = True
    parsed.host = host
    return parsed


def free_ports(first: int) -> Iterator[int]:
    """Ports of loopback, from ``first`` on, that nobody listens on at this moment."""
    for port in range(first, 65536):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


def set_up_logging(*, debug: bool) -> None:
    """Log to standard error, which the parent directs to a file. SDKs stay quiet: their debug lines hold secrets."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    if debug:
        for name in ("inference_benchmarker", "locust"):
            logging.getLogger(name).setLevel(logging.DEBUG)
