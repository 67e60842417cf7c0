"""The primary's socket: a worker that comes again takes the place of its old connection, as behind a cut link.

And nothing that came waits until something else comes.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from inference_benchmarker.engine.worker.outbox import report_interval_s

_BEGINNING = """
import time
from inference_benchmarker.engine.locust import runtime
import gevent
from inference_benchmarker.engine.locust.sockets import PrimarySocket, WorkerSocket, gathering_s
from inference_benchmarker.engine.locust.zmq_keys import make_keys
from locust.rpc.protocol import Message
"""

# The first connection stays open, as one does of which nobody has reported that it is over.
_COMES_AGAIN = """
def heard():
    return primary.recv_from_client()[1].data

def told(worker):
    return worker.recv().data

keys, (own,) = make_keys(1)
with gevent.Timeout(20):
    primary = PrimarySocket(keys, lambda visitors: None, None, "127.0.0.1", 0)
    address = f"tcp://127.0.0.1:{primary.port}"
    connections = []
    for number in range(2):
        worker = WorkerSocket(own, address, "", 0, "same")
        connections.append(worker)
        worker.send(Message(runtime.READY, number, "same"))
        assert heard() == number
        primary.send_to_client(Message(runtime.START, number, "same"))
        assert told(worker) == number
"""


# To send takes up ZeroMQ's news of what came, and the listener, which sleeps, would never hear of it.
_NEWS = """
keys, own = make_keys(20)
with gevent.Timeout(20):
    primary = PrimarySocket(keys, lambda visitors: None, None, "127.0.0.1", 0)
    worker = WorkerSocket(own[7], f"tcp://127.0.0.1:{primary.port}", "", 0, "eighth")
    worker.send(Message(runtime.READY, "first", "eighth"))
    assert primary.recv_from_client()[1].data == "first"
    listener = gevent.spawn(primary.recv_from_client)
    gevent.sleep(0.2)
    worker.send(Message(runtime.READY, "second", "eighth"))
    until = time.monotonic() + 0.2
    while time.monotonic() < until:  # it comes, and no other greenlet runs
        pass
    primary.send_to_client(Message(runtime.START, None, "eighth"))
    assert listener.get()[1].data == "second"
assert [gathering_s(workers) for workers in (1, 9, 10, 25, 50, 1_000)] == [0, 0, 0.01, 0.02, 0.05, 0.05]
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_COMES_AGAIN, id="a worker that comes again while its old connection lingers"),
        pytest.param(_NEWS, id="what came just before something is sent, while the listener sleeps"),
    ],
)
def test_workers_are_heard_and_reported(program: str) -> None:
    line = [sys.executable, "-c", _BEGINNING + program]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("workers", "interval_s"),
    [(1, 0.5), (2, 0.5), (25, 0.5), (26, 0.52), (40, 0.8), (50, 1.0), (51, 1.0), (1_000, 1.0)],
)
def test_many_workers_report_less_often(workers: int, interval_s: float) -> None:
    assert report_interval_s(workers) == pytest.approx(interval_s)
