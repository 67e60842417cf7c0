"""Waves that replay a recording, judged by the log of the endpoint that they were sent to."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.wave.wave import Wave
from tests.bench import NS, Bench, ids
from tests.mentions import mentions
from tests.recordings import csv_of, taken

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

FACTORIES = """
from sender import post


def invoke_factory():
    return post


def payload_factory():
    return {"pre_computed": False, "input": lambda row: row["number"]}
"""
TIMES = [f"{burst / 4 + place / 1000:.3f}" for burst in range(6) for place in range(0, 40, burst + 1)]


def test_rows_arrive_when_they_were_recorded_by_any_number_of_workers(bench: Bench, tmp_path: Path) -> None:
    file = csv_of(tmp_path / "trace.csv", TIMES)
    dues = [round((float(each) - float(TIMES[0])) / 2 * NS) for each in TIMES]
    with ExitStack() as stack:
        started = []
        for workers in (1, 3):
            endpoint = stack.enter_context(bench.endpoint(service="none"))
            flags = ("--replay", file, "--speed", "2", "--workers", workers)
            started.append((endpoint, bench.start(*flags, factories=FACTORIES, target=endpoint)))
        for endpoint, running in started:
            wave = running.finish()
            wave.check_books()
            assert [(row["index"], row["due"]) for row in wave.everything] == list(enumerate(dues))
            log = endpoint.arrivals()
            assert sorted(map(int, ids(log))) == list(range(len(TIMES)))
            arrived = dict(zip(map(int, ids(log)), log["queued_ns"], strict=True))
            start = wave.summary["window"]["t0_monotonic_ns"]
            assert all(arrived[number] - start >= dues[number] for number in arrived), "each row at its own time"
            assert wave.summary["ledger"]["scheduled"] == len(TIMES)
            assert mentions(wave.out, "trace.csv", "2 times", "99 arrivals")
            assert not (wave.folder / "recorded_rows").exists()
            check_stored(wave.folder, dues)


def check_stored(folder: Path, dues: list[int]) -> None:
    """Read back, the wave has its due times, though its recording is nowhere in it."""
    loaded = Wave.load(folder)
    assert [arrival.due for arrival in TokenBucket.of(loaded.plan).arrivals(0)][:5] == dues[:: loaded.plan.workers][:5]
    assert loaded.summary.ledger.scheduled == len(dues)
    reported = json.loads((folder / "plan.json").read_text())["load"]["replay"]["recording"]
    assert (reported["rows"], reported["format"]) == (len(dues), "CSV")


def test_a_wave_that_was_cut_off_is_finalised_with_what_was_due(bench: Bench, tmp_path: Path) -> None:
    file = csv_of(tmp_path / "trace.csv", [f"{place / 50:.2f}5" for place in range(3000)])
    with bench.endpoint(service="none") as endpoint:
        running = bench.start("--replay", file, "--workers", 2, factories=FACTORIES, target=endpoint)
        running.wait_for_arrivals(endpoint, 40)
        running.kill_all()
        (run_dir,) = running.run_dirs()
        assert (run_dir / "recorded_rows").exists()
        reported = bench.report(run_dir)
    assert "trace.csv, 3,000 arrivals" in reported.out
    assert not (run_dir / "recorded_rows").exists()
    ledger = Wave.load(run_dir).ledger
    assert ledger.scheduled == ledger.sent + ledger.dropped + ledger.lost == 3000


def test_a_number_of_requests_cuts_a_recording(tmp_path: Path) -> None:
    file = csv_of(tmp_path / "trace.csv", TIMES)
    replay = taken(file, number=10)
    assert replay.recording is not None
    assert replay.recording.rows == 10
    bucket = TokenBucket(OpenLoop(replay=replay), Bounds(num_requests=10))
    assert sum(bucket.count()) == 10
    assert isinstance(replay, Replay)
