"""One primary and 50 workers that make records without sending: up to which rate it takes them, and what one costs.

The primary is the real process, with its keys and its spool on disk. The workers are simulated: a process has so many
connections, each with a worker's own keys, and reports as often as a worker what one would, until it is acknowledged;
the records themselves are made beforehand. Agents and ssh have no part in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import zmq

from inference_benchmarker.engine.hosts.local import LocalHost
from inference_benchmarker.engine.locust.zmq_keys import WorkerKeys, make_keys
from inference_benchmarker.engine.watchers.wave_processes import PrimaryProcess
from inference_benchmarker.engine.worker.outbox import report_interval_s
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.batch import BASE, joined_batch, split_batch
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.system.packaged import HTTP_FILE, packaged
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.words.units import NS
from tests.performance.figures import Figure, below, exactly, table
from tests.performance.hosts.stage import folder
from tests.performance.measure import cpu_s, percentile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WORKERS = 50
FLEETS = 2
SECONDS = 10
RATES = (50_000, 100_000, 200_000, 400_000, 700_000, 1_000_000)
REPORT_S = report_interval_s(WORKERS)
PATIENCE_S = 120.0
LATE_S = 1.0  # a primary that keeps up has all reports so long after the last one is made


class Stub:
    """One simulated worker."""

    def __init__(self, context: zmq.Context[Any], address: str, number: int, keys: WorkerKeys, records: int) -> None:
        self.name = f"stub_{number}"
        self.socket = context.socket(zmq.DEALER)
        keys.protect(self.socket)
        self.socket.setsockopt(zmq.IDENTITY, self.name.encode())
        self.socket.connect(address)
        self.number = number
        self.t0: int | None = None
        self.sequence = 0
        self.made_at: dict[int, float] = {}
        self.delays_s: list[float] = []
        self._records = records
        self._meta, *self._sections = _batch(records)
        self.say("client_ready", version("locust"))  # to import it would patch the process
        payloads = {"payloads": 1, "in_turn": True, "sessions": False}
        self.say("wave_ready", {"error": None, "canaries": None, "warmed": None, **payloads, "descriptors": 1_000})

    @property
    def is_over(self) -> bool:
        """Tells whether all that it reported was acknowledged."""
        return self.sequence == round(SECONDS / REPORT_S) and not self.made_at

    def say(self, kind: str, data: Any) -> None:
        self.socket.send(msgpack.packb((kind, data, self.name)), copy=False)

    def hear(self) -> None:
        """Take a message of the primary's."""
        kind, data, _ = msgpack.unpackb(self.socket.recv())
        match kind:
            case "spawn":
                self.say("spawning", None)
                count = data["user_classes_count"]
                self.say("spawning_complete", {"user_classes_count": count, "user_count": sum(count.values())})
            case "wave_start":
                self.say("wave_armed", None)
            case "wave_go":
                self.t0 = data["t0"]
            case "wave_ack":
                self.delays_s.append(time.monotonic() - self.made_at.pop(data["sequence"]))

    def report_if_due(self) -> None:
        """Report what the time since the last report would have brought."""
        last = round(SECONDS / REPORT_S)
        if self.t0 is None or self.sequence == last:
            return
        at = time.monotonic_ns() - self.t0
        if at < (self.sequence + 1 + self.number / WORKERS) * REPORT_S * NS:
            return
        sent = self._records * (self.sequence + 1)
        ledger = Ledger(scheduled=sent, sent=sent, ok=sent).to_json()
        fields = {"worker": self.number, "sequence": self.sequence, "at": at, "final": self.sequence + 1 == last}
        self.made_at[self.sequence] = time.monotonic()
        self.say("wave_batch", joined_batch({**self._meta, **fields, "ledger": ledger}, *self._sections))
        self.sequence += 1


def _batch(records: int) -> tuple[Any, ...]:
    """What a worker's report of so many requests consists of."""
    writer = BatchWriter()
    for index in range(records):
        due = index * 10_000
        writer.add(index, due, due + 100_000, due + 20_000_000, 0, 2, 0, 0, 0)
    return split_batch(writer.take({"use": {}}))


def fleet() -> None:
    """Be some of the workers; what to be stands on standard input, and what came of it goes to standard output."""
    job = json.loads(sys.stdin.readline())
    with zmq.Context() as context:
        stubs = [
            Stub(context, job["address"], number, WorkerKeys.from_json(keys), job["records"])
            for number, keys in job["workers"]
        ]
        poller = zmq.Poller()
        by_socket = {stub.socket: stub for stub in stubs}
        for socket in by_socket:
            poller.register(socket, zmq.POLLIN)
        until = time.monotonic() + PATIENCE_S
        while not all(stub.is_over for stub in stubs) and time.monotonic() < until:
            for socket, _ in poller.poll(2):
                by_socket[socket].hear()
            for stub in stubs:
                stub.report_if_due()
        print(json.dumps({"delays_s": [delay for stub in stubs for delay in stub.delays_s]}), flush=True)
        context.destroy(linger=0)


def play(arguments: Sequence[str]) -> bool:
    """Measure at each rate; true where the primary kept up with all of them."""
    kept_up = True
    with folder() as place:
        for rate in map(int, arguments or RATES):
            found = _figures(place, rate)
            print(table(f"{rate:,} records/s from {WORKERS} workers", found), end="\n\n", flush=True)
            kept_up &= all(figure.verdict != "short" for figure in found)
    return kept_up


def _figures(place: Path, rate: int) -> list[Figure]:
    records = round(rate * REPORT_S / WORKERS)
    run_dir = RunDir.create(place)
    bounds = Bounds(duration_s=Decimal(SECONDS))
    file = packaged("factories", HTTP_FILE)
    plan = WavePlan(OpenLoop(Decimal(rate)), bounds, factories_file=file, workers=WORKERS, output_dir=place)
    local = LocalHost(run_dir)
    primary = PrimaryProcess(local)
    keys, own = make_keys(WORKERS)
    fields = {"plan": plan.to_json(), "run_dir": str(run_dir.path), "host": local.own().to_json(), "also": None}
    primary.begin({**fields, "keys": keys.to_json()})
    port = _await(primary, "listening")["port"]
    workers = [(number, each.to_json()) for number, each in enumerate(own)]
    fleets = [
        _fleet({"address": f"tcp://127.0.0.1:{port}", "workers": workers[number::FLEETS], "records": records})
        for number in range(FLEETS)
    ]
    t0 = _await(primary, "started")["t0"]
    process = primary._process
    before = cpu_s(process.pid)
    while (time.monotonic_ns() - t0) / NS < SECONDS + REPORT_S:
        time.sleep(0.1)
    spent = cpu_s(process.pid) - before
    _await(primary, "finished")
    late_s = (time.monotonic_ns() - t0) / NS - SECONDS - REPORT_S
    delays = [delay for each in fleets for delay in json.loads(each.communicate(timeout=PATIENCE_S)[0])["delays_s"]]
    stored = run_dir.spool.stat().st_size / (BASE.size * records)
    local.close()
    primary.close()
    reports = WORKERS * round(SECONDS / REPORT_S)
    run_dir.spool.unlink()
    return [
        Figure(f"reports acknowledged of {reports}", len(delays), "", exactly(reports)),
        Figure("reports in the spool, by its size", stored),
        Figure("all of them there after the last was due", late_s, "s", below(LATE_S)),
        Figure("a report on its way and back, median", 1e3 * percentile(np.array(delays), 50), "ms"),
        Figure("the same, p99", 1e3 * percentile(np.array(delays), 99), "ms"),
        Figure("CPU of the primary", 100 * spent / (SECONDS + REPORT_S), "% of a core"),
        Figure("the same for a record", 1e6 * spent / (records * len(delays)), "us"),
    ]


def _fleet(job: dict[str, Any]) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "tests.performance.hosts.records"]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    print(json.dumps(job), file=process.stdin, flush=True)
    return process


def _await(primary: PrimaryProcess, name: str) -> dict[str, Any]:
    """The next event of this name. RuntimeError where the primary ends instead, or takes too long."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        has_ended = primary.has_ended()  # what it said before is still to be heard
        for event in primary.events():
            if event["event"] == name:
                return event
        if has_ended:
            break
        primary.wait(0.05)
    raise RuntimeError(f"the primary did not come to {name!r}: {primary.last_words()}")


if __name__ == "__main__":
    fleet()
