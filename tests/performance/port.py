"""What CURVE costs the primary: CPU for each record that it hears of, less that of hearing the same without keys.

A process of its own hears the batches, so that its CPU, ZeroMQ's own thread included, is the primary's part alone. Both
ways take turns, and the median of the pairs is the figure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from statistics import median

import msgpack
import zmq

from inference_benchmarker.engine.locust.zmq_keys import PrimaryKeys, WorkerKeys, make_keys
from inference_benchmarker.records.batch import BASE
from tests.performance.figures import Figure, Program, below

SIZES = 5_000, 10_000
PAIRS = 7
PAUSE_S = 0.01  # in a wave batches come one by one, too


def hear(keys: PrimaryKeys | None, batches: int) -> None:
    """Print a port, hear one message and then the batches there; print the CPU that these took, in seconds."""
    with zmq.Context() as context, context.socket(zmq.REP) as gate, context.socket(zmq.ROUTER) as server:
        gate.bind("inproc://zeromq.zap.01")
        if keys is not None:
            keys.protect(server)
        print(server.bind_to_random_port("tcp://127.0.0.1"), flush=True)
        if keys is not None:
            gate.send_multipart(keys.answer(gate.recv_multipart()))
        server.recv_multipart()
        start = time.process_time()
        for _ in range(batches):
            msgpack.unpackb(server.recv_multipart(copy=False)[1].buffer)
        print(time.process_time() - start, flush=True)


def cost_us(records: int, batches: int, *, protected: bool) -> float:
    """CPU in µs for each record of these batches, where a batch has so many records."""
    keys, (own,) = make_keys(1)
    given = json.dumps([keys.to_json() if protected else None, batches])
    command = [sys.executable, "-m", "tests.performance.port", "--hear"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hearer:
        assert hearer.stdin is not None
        assert hearer.stdout is not None
        print(given, file=hearer.stdin, flush=True)
        _send(int(hearer.stdout.readline()), own if protected else None, records, batches)
        return 1e6 * float(hearer.stdout.readline()) / records / batches


def _send(port: int, keys: WorkerKeys | None, records: int, batches: int) -> None:
    message = msgpack.packb(("wave_batch", os.urandom(records * BASE.size), "worker"))
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        if keys is not None:
            keys.protect(client)
        client.connect(f"tcp://127.0.0.1:{port}")
        client.send(b"here")
        for _ in range(batches):
            time.sleep(PAUSE_S)
            client.send(message)


def figures(seconds: float) -> list[Figure]:
    """As many batches as take about so long to send."""
    batches = round(seconds / PAUSE_S)
    found = []
    for records in SIZES:
        pairs = [[cost_us(records, batches, protected=protected) for protected in (False, True)] for _ in range(PAIRS)]
        added = median(curve - plain for plain, curve in pairs)
        found += [
            Figure(f"CURVE, {records:,} records a batch", added, "us/record", below(0.5)),
            Figure("the same batches without keys", median(plain for plain, _ in pairs), "us/record"),
            Figure("a batch with keys", records * median(curve for _, curve in pairs) / 1e3, "ms"),
        ]
    return found


PROGRAM = Program("cost of CURVE to the primary", figures, seconds=3, quick_seconds=0.5)

if __name__ == "__main__":
    if sys.argv[1:] == ["--hear"]:
        hearer_keys, number = json.loads(sys.stdin.readline())
        hear(hearer_keys and PrimaryKeys.from_json(hearer_keys), number)
    else:
        PROGRAM.main()
