"""The primary's socket: a worker that comes again takes the place of its old connection, as behind a cut link."""

from __future__ import annotations

import subprocess
import sys

# The first connection stays open, as one does of which nobody has told that it is over.
_PROGRAM = """
from inference_benchmarker.engine.locust import runtime
import gevent
from inference_benchmarker.engine.locust.sockets import PrimarySocket, WorkerSocket
from inference_benchmarker.engine.locust.zmq_keys import make_keys
from locust.rpc.protocol import Message

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


def test_a_worker_that_comes_again_is_heard_and_told_while_its_old_connection_lingers() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
