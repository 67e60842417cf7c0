"""What the command holds of a wave that runs does not grow with its hours: two minutes stand for them."""

from __future__ import annotations

import gc
import random
import tracemalloc
from typing import TYPE_CHECKING

from inference_benchmarker.facts import client_samples
from inference_benchmarker.facts.client_samples import HOST, Sample
from inference_benchmarker.records import feed
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.record import NONE, OK, Ledger
from inference_benchmarker.wave.spool import worker_state
from inference_benchmarker.wave.spool.spool import SpoolWriter
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from tests.waves import MS, use

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RATE = 10
A_REPORT = 500
"""Bytes that may stay of a report: where it stands in the spool."""


def test_what_is_held_of_a_wave_that_runs_is_that_of_its_last_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "KEPT_S", 10)
    monkeypatch.setattr(client_samples, "MOST_STRETCHES", 16)
    monkeypatch.setattr(worker_state, "MOST_DELAYS", 500)
    draw, spool = random.Random(1), SpoolWriter(tmp_path / "spool.bin")
    state, writer = SpoolState([tmp_path / "spool.bin"], 1), BatchWriter()
    writer.feed.set_stages([])

    def second(number: int) -> None:
        for index in range(number * RATE, (number + 1) * RATE):
            due = index * NS // RATE
            sent = due + draw.randrange(1, 3) * MS
            writer.add(index, due, sent, sent + draw.randrange(20, 30) * MS, 0, NONE, 0, 0, OK)
        delays = [draw.randrange(100, 200) for _ in range(25)]
        ledger = Ledger(scheduled=(number + 1) * RATE, sent=(number + 1) * RATE, ok=(number + 1) * RATE).to_json()
        meta = {"worker": 0, "at": number * NS, "final": False, "ledger": ledger, "use": use(delays_us=delays)}
        spool.batch(writer.take(meta))
        samples = [Sample(float(number), name, draw.random(), number) for name in (HOST, "primary", "worker_0")]
        spool.event(event="client", samples=samples)
        state.read()

    tracemalloc.start()
    try:
        held = []
        for number in range(120):
            second(number)
            if number in (59, 119):
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        state.close()
        spool.close()
    assert held[1] - held[0] < 60 * A_REPORT
