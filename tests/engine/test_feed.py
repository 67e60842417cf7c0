"""The live feed of a real wave, held against the records that it stored."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker import Bounds, OpenLoop, Stage, WavePlan, run_wave
from inference_benchmarker.engine.progress_listener import NullView
from inference_benchmarker.summary.request_times import output_tokens
from inference_benchmarker.summary.statistics.distribution import Distribution
from tests.bench import NS, SENDER, Bench
from tests.parts import in_memory

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.records.columns import Floats, Records
    from inference_benchmarker.records.feed import Cell
    from inference_benchmarker.wave.spool.spool_state import SpoolState

pytestmark = pytest.mark.process

FACTORIES = """
import json
import os
from geventhttpclient import HTTPClient
from sender import post

client = HTTPClient.from_url(os.environ["TARGET"], concurrency=100, network_timeout=20)
ASKED = {"stream": True, "max_tokens": 8, "messages": [{"role": "user", "content": "one two"}]}


def streamed():
    response = client.post("/v1/chat/completions", body=json.dumps(ASKED).encode())
    while line := response.readline(b"\\n"):
        if line.startswith(b"data: {"):
            yield line


def invoke_factory():
    def invoke(number):
        if number % 10 == 0:
            raise KeyError(number)
        if number % 10 == 1:
            raise ValueError(number)
        return streamed() if number % 2 else post(number)

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": list(range(1000))}
"""
STAGES = [Stage.parse(text) for text in ("calm=100:0.7s", "100..300:0.8s", "20:0.6s")]


class Watching(NullView):
    """Keeps what the view of a wave is shown."""

    def update(self, spool_state: SpoolState, now_ns: int) -> None:  # noqa: ARG002 - as Live has it
        self.spool_state = spool_state


def test_it_adds_up_to_what_was_stored(tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sender.py").write_text(SENDER)
    (tmp_path / "factories.py").write_text(FACTORIES)
    live = Watching()
    plan = WavePlan(
        OpenLoop(stages=tuple(STAGES)),
        Bounds(Decimal("2.1")),
        factories_file=tmp_path / "factories.py",
        workers=2,
        warmup_s=Decimal("0.5"),
        output_dir=tmp_path / "runs",
    )
    with bench.endpoint() as endpoint:
        monkeypatch.setenv("TARGET", endpoint.url)
        records = in_memory(run_wave(plan, live).records)
    feed = live.spool_state.feed
    assert len(records) > 200
    ends = plan.load.stage_ends_ns if isinstance(plan.load, OpenLoop) else ()
    stages = np.searchsorted(ends, records.int("due"), side="right")
    for number in range(len(STAGES)):
        check(feed.stage(number), records.where(stages == number))
    check(feed.total(), records)
    for second in range(3):
        check_counts(feed.second(second), records, second)


def check_counts(cell: Cell, records: Records, second: int) -> None:
    """By the second in which they were sent, or over."""
    assert cell.sent == np.count_nonzero(records.int("sent") // NS == second)
    over = records.where(records.int("done") // NS == second)
    assert cell.ok == np.count_nonzero(over.outcome("ok"))
    assert cell.errors == np.count_nonzero(over.outcome("failed"))


def check(cell: Cell, records: Records) -> None:
    """Counts and tokens are those of the records, percentiles within 1% of them."""
    ok = records.outcome("ok")
    codes, names = records.coded("error")
    assert (cell.sent, cell.ok, cell.in_flight) == (len(records), int(ok.sum()), 0)
    assert cell.failed == Counter(names[code] for code in codes if code >= 0)
    assert set(cell.failed) <= {"KeyError", "ValueError"}
    due, sent, done = (records.int(name) / NS for name in ("due", "sent", "done"))
    streams = ok & records.has("first_token")
    assert cell.tokens == int(output_tokens(records)[streams].sum())
    check_times(cell, "latency", (done - sent)[ok])
    check_times(cell, "response_time", (done - due)[ok])
    check_times(cell, "lag", sent - records.int("build_ns") / NS - due)
    check_times(cell, "ttft", (records.int("first_token") / NS - sent)[streams])
    check_times(cell, "itl", records.gaps(streams))


def check_times(cell: Cell, name: str, seconds: Floats) -> None:
    exact, found = Distribution.of(seconds), cell.times[name]
    assert exact is not None
    assert found.count == exact.count
    wanted: list[Any] = [pytest.approx(exact.percentile(percent), rel=0.01) for percent in (50, 99)]
    assert found.percentiles(50, 99) == wanted, name
