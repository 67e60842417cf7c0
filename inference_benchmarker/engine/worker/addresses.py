"""The addresses that a process connects to, heard of from Python itself; of native clients, looked up afterwards."""

from __future__ import annotations

import sys
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import psutil

from inference_benchmarker.facts.address import Address

_MOST = 8


class Addresses:
    """Hears of every connection and look-up from when it is made on; there is one in a process, as it is never deaf.

    ``is_sagemaker``: boto3's description of SageMaker's runtime was read, or a host of that name looked up.
    """

    def __init__(self) -> None:
        self.is_sagemaker = False
        self._name: str | None = None  # the last one that was looked up
        self._connected: dict[tuple[str, int], str | None] = {}
        sys.addaudithook(self._hear)

    def begin(self) -> None:
        """Forget the connections so far: those of a request follow."""
        self._connected.clear()

    def found(self) -> list[Address]:
        """The addresses, in the order in which they were first connected to."""
        found = [Address(address, port, name) for (address, port), name in self._connected.items()]
        return (found or _of_native_clients())[:_MOST]

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        """In whatever thread it happens; what raised here would be raised to the user's code."""
        with suppress(Exception):
            if event == "socket.connect":
                self._connect(args[1])
            elif event == "socket.getaddrinfo":
                self._look_up(args[0])
            elif event == "open" and "sagemaker-runtime" in str(args[0]):
                self.is_sagemaker = True

    def _connect(self, address: Any) -> None:
        if isinstance(address, tuple) and len(address) >= 2 and _is_address(address[0]):
            self._connected.setdefault((address[0], int(address[1])), self._name)

    def _look_up(self, host: Any) -> None:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
        self.is_sagemaker = self.is_sagemaker or "sagemaker" in name
        self._name = None if host is None or _is_address(name) else name


def _is_address(text: Any) -> bool:
    try:
        ip_address(str(text).partition("%")[0])
    except ValueError:
        return False
    return True


def _of_native_clients() -> list[Address]:
    """The connections that stand, as gRPC's, which opens its own."""
    with suppress(psutil.Error, OSError):
        standing = psutil.Process().net_connections("tcp")
        return list(dict.fromkeys(Address(c.raddr.ip, c.raddr.port) for c in standing if c.raddr))
    return []
