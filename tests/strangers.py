"""Who else may speak to a primary's port: junk, floods, forged batches, a stray Locust worker.

``python -m tests.strangers ADDRESS``: all that a stranger may say there, from wherever this runs.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgpack
import psutil
import zmq

from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.record import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.bench import Running


LOCUST_FILE = "from locust import User, task\nclass U(User):\n    @task\n    def t(self): pass\n"

HEARTBEAT = {"current_cpu_usage": 1, "current_memory_usage": 1}

JUNK = [
    b"\xc1\xc1",
    b"",
    msgpack.packb(5),
    msgpack.packb(("heartbeat", HEARTBEAT, "stranger")),
    msgpack.packb(("wave_batch", {"worker": 0, "sequence": 1, "final": False, "batch": b"junk"}, "stranger")),
    msgpack.packb(("locustfile", {"version": None}, "stranger")),
]


def port_of(running: Running) -> int:
    """Where the primary listens."""

    def listening() -> list[int]:
        with suppress(IndexError, psutil.Error):
            connections = running.primary().net_connections("tcp")
            return [connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN]
        return []

    ports: list[int] = running.wait_for(listening, "the primary's port")
    return ports[0]


RAW = (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 9 + b"\x01\x7f", bytes(100))


def say(context: zmq.Context[Any], address: int | str, *messages: bytes, **options: Any) -> None:
    """Speak to a port of this host, or an address in ZeroMQ's form, as Locust's workers do, but as a stranger."""
    stranger = context.socket(zmq.DEALER)
    stranger.setsockopt(zmq.IDENTITY, b"stranger")
    stranger.setsockopt(zmq.LINGER, 0)
    for name, value in options.items():
        setattr(stranger, name, value)
    stranger.connect(address if isinstance(address, str) else f"tcp://127.0.0.1:{address}")
    for message in messages:
        stranger.send(message)


def forged_batches(number: int) -> Iterator[bytes]:
    """Batches of a wave in which every request took a quarter of a millisecond."""
    for sequence in range(number):
        writer = BatchWriter()
        for index in range(5 * sequence, 5 * sequence + 5):
            writer.add(index, index * 10**7, index * 10**7, index * 10**7 + 250_000, 0, 2, 0, 0, 0)
        sent = 5 * (sequence + 1)
        ledger = Ledger(scheduled=sent, sent=sent, ok=sent).to_json()
        claim = {"worker": 0, "sequence": sequence, "final": sequence == number - 1}
        batch = writer.take({**claim, "at": sent * 10**7, "ledger": ledger, "use": {}})
        yield msgpack.packb(("wave_batch", {**claim, "batch": batch}, "stranger"))


@contextmanager
def stray_locust_worker(folder: Path, port: int) -> Iterator[None]:
    """Somebody else's Locust worker, started with the same port."""
    (folder / "stray.py").write_text(LOCUST_FILE)
    command = [sys.executable, "-m", "locust", "-f", "stray.py", "--worker", "--master-port", str(port)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def raw_connection(port: int, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(data)
    return connection


FLOOD = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, 2 * resource.getrlimit(resource.RLIMIT_NOFILE)[1:])
connections = []
for _ in range(5_000):
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex(("127.0.0.1", int(sys.argv[1])))
    connections.append(connection)
print("flooded", flush=True)
sys.stdin.read()
"""


@contextmanager
def flood(port: int) -> Iterator[None]:
    """Somebody who opens 5,000 connections and holds them without a word."""
    command = [sys.executable, "-c", FLOOD, str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline()
        yield
    finally:
        process.communicate()


def _raw(address: str, data: bytes) -> socket.socket:
    """A connection to an address in ZeroMQ's form, on which bytes are sent that are no message."""
    kind, _, place = address.partition("://")
    host, _, port = place.rpartition(":")
    family, to = (socket.AF_UNIX, place) if kind == "ipc" else (socket.AF_INET, (host, int(port)))
    connection = socket.socket(family)
    connection.connect(to)
    connection.sendall(data)
    return connection


def _say_everything(address: str, seconds: float) -> None:
    with zmq.Context() as context:
        public, secret = zmq.curve_keypair()
        say(context, address, *JUNK, *forged_batches(24))
        say(context, address, *JUNK, curve_publickey=public, curve_secretkey=secret, curve_serverkey=public)
        held = [_raw(address, data) for data in RAW]
        time.sleep(seconds)
        for connection in held:
            connection.close()
        context.destroy(linger=0)


if __name__ == "__main__":
    _say_everything(sys.argv[1], 1.0)
