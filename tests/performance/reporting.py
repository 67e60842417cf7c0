"""The cost of a record on its way: CPU of the primary and of the command for each request.

A wave of 10,000 requests a second that wait for nothing, less the same wave at 100/s: what is left grows with the
requests. And the same without a wave: batches of many records and of few are vetted, spooled, followed and, in the
end, read.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import psutil

from inference_benchmarker.records.batch import Report
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.record import NONE, Ledger
from inference_benchmarker.wave.spool.spool import SpoolWriter
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from tests.performance import measure
from tests.performance.figures import Figure, Program, below

INSTANT = Path(__file__).parent / "factories_instant.py"
WORKERS, HIGH, LOW, TURNS = 2, 10_000, 100, 3
SETTLING_S, LAST_S, PATIENCE_S = 3.0, 1.0, 30.0
PRIMARY, COMMAND = "primary", "command"
BATCHES, MANY, FEW = 200, 2_500, 25  # a worker's half second at 10,000/s on two workers, and at 100/s


def cpu_share(rate: int, seconds: float) -> dict[str, float]:
    """CPU seconds a second of the primary and of the command in the middle of a wave."""
    length = SETTLING_S + seconds + LAST_S
    flags = ("--client-rps", str(rate), "--obs-time", f"{length:g}", "--workers", str(WORKERS))
    with measure.running(INSTANT, "", 1, *flags) as (command, finish):
        pids = {PRIMARY: _primary_below(command.pid), COMMAND: command.pid}
        time.sleep(SETTLING_S)
        begun, before = time.monotonic(), {name: measure.cpu_s(pid) for name, pid in pids.items()}
        time.sleep(seconds)
        elapsed = time.monotonic() - begun
        shares = {name: (measure.cpu_s(pid) - before[name]) / elapsed for name, pid in pids.items()}
        wave = finish()
    if len(wave.requests) < 0.99 * rate * length:
        raise RuntimeError(f"{len(wave.requests):,} requests were sent of {rate * length:,.0f}")
    return shares


def taken_in(records: int) -> tuple[float, float, float]:
    """CPU in us a batch of so many records: of the primary's work, of the command's, and of reading the rows."""
    batches = _batches(records)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spool.bin"
        spool = SpoolWriter(path)
        begun = time.process_time()
        for batch in batches:
            spool.batch(Report.of(batch).batch)
        spooled = time.process_time()
        state = SpoolState([path], 1)
        state.read()
        followed = time.process_time()
        rows = state.records()
        read = time.process_time()
        state.close()
        spool.close()
    assert len(rows) == records * BATCHES
    vetted, follow, rest = (
        1e6 * seconds / BATCHES for seconds in (spooled - begun, followed - spooled, read - followed)
    )
    return vetted, follow, rest


def _batches(records: int) -> list[bytes]:
    """A worker's batches of half a second each, evenly filled; latencies from 1 to 3 ms."""
    writer, found = BatchWriter(), []
    for number in range(BATCHES):
        for place in range(records):
            index = number * records + place
            due = (number * NS + place * NS // records) // 2
            sent = due + 50_000 + 37 * index % 20_000
            writer.add(index, due, sent, sent + 1_000_000 + 7_919 * index % 2_000_000, 0, NONE, 0, 0, 0)
        ledger = Ledger(sent=(number + 1) * records, ok=(number + 1) * records)
        meta = {"worker": 0, "sequence": number, "at": (number + 1) * NS // 2, "final": False}
        found.append(writer.take({**meta, "ledger": ledger.to_json()}))
    return found


def _primary_below(command: int) -> int:
    """The process id of the command's primary, once it has workers beside it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        children = psutil.Process(command).children()
        primaries = [each.pid for each in children if any("engine.primary" in part for part in each.cmdline())]
        if primaries and len(children) > WORKERS:
            return primaries[0]
        time.sleep(0.05)
    raise RuntimeError("the command has no primary")


def figures(seconds: float) -> list[Figure]:
    """Waves of both rates in turn, then the batches alone; medians."""
    turns = [(cpu_share(HIGH, seconds), cpu_share(LOW, seconds)) for _ in range(TURNS)]
    grows = {
        name: median(1e6 * (high[name] - low[name]) / (HIGH - LOW) for high, low in turns)
        for name in (PRIMARY, COMMAND)
    }
    many, few = (
        [median(column) for column in zip(*map(taken_in, [size] * TURNS), strict=True)] for size in (MANY, FEW)
    )
    vetted, followed, read = ((high - low) / (MANY - FEW) for high, low in zip(many, few, strict=True))
    return [
        Figure("primary and command together", sum(grows.values()), "us/request", below(0.5)),
        *(Figure(f"the {name}", grown, "us/request") for name, grown in grows.items()),
        *(
            Figure(f"the {name} at {LOW}/s", 100 * median(low[name] for _, low in turns), "% of a core")
            for name in grows
        ),
        *(
            Figure(f"the {name} at {HIGH:,}/s", 100 * median(high[name] for high, _ in turns), "% of a core")
            for name in grows
        ),
        Figure("batches alone: vetted and spooled", vetted, "us/request"),
        Figure("batches alone: followed", followed, "us/request"),
        Figure("batches alone: rows read in the end", read, "us/request"),
        Figure(f"a batch of {FEW}: vetted and spooled", few[0], "us"),
        Figure(f"a batch of {FEW}: followed", few[1], "us"),
    ]


PROGRAM = Program("a record's way to the command", figures, seconds=20, quick_seconds=5)

if __name__ == "__main__":
    PROGRAM.main()
