"""Waves whose requests are counted (``--records none``), judged by the log of the endpoint they were sent to."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from inference_benchmarker.records.counts import PRECISION
from inference_benchmarker.wave.wave import Wave
from tests.bench import NS, Bench, ids

pytestmark = pytest.mark.process

NONE = ("--records", "none")


def test_counts_are_those_of_the_endpoints_log(bench: Bench) -> None:
    """The warm-up apart, more requests than have a row, and the slowest of them."""
    with bench.endpoint(servers=100, error_share=0.1, seed=3) as endpoint:
        load = ("--client-rps", 1000, "--obs-time", "1.2", "--warmup", "0.3", "--workers", 2, "--seed", 11)
        wave = bench.run(*load, *NONE, "--slo", "p99<60s", target=endpoint)
        log = endpoint.arrivals()
    t0, window = wave.summary["window"]["t0_monotonic_ns"], len(log["id"]) - 300
    statuses = Counter(log["status"])
    assert window == wave.ledger["scheduled"] == wave.ledger["sent"] == 1200
    warmup = wave.summary["warmup"]
    assert warmup["sent"] == 300
    assert wave.ledger["ok"] + warmup["ok"] == statuses[200]
    assert wave.ledger["failed"] + warmup["failed"] == statuses[500]
    (error,) = wave.summary["errors"]
    assert (error["key"], error["count"]) == ("HttpError 500", wave.ledger["failed"])
    assert wave.summary["latency"]["count"] == wave.ledger["ok"]
    assert wave.summary["latency"]["precision"] == PRECISION
    assert wave.summary["records"] == {"kept": "none", "rows": 1000, "not_told": ["cold_start"]}
    assert wave.summary["rates"]["completed"] == pytest.approx(wave.ledger["ok"] / 1.2, rel=0.1)
    assert len(wave.rows) == len(wave.everything) == 1000
    slowest = [row for row in wave.rows if row["outcome"] == "ok"]
    longest = max(row["done"] - row["sent"] for row in slowest)
    assert wave.summary["latency"]["max"] == longest / NS
    finish = dict(zip(map(int, log["id"]), log["finish_ns"], strict=False))
    assert all(finish[row["index"]] - t0 <= row["done"] for row in slowest)
    assert not (wave.folder / "spool.bin").exists()
    assert Wave.load(wave.folder).to_json() == wave.summary


def test_a_counted_wave_that_was_killed_is_finished_by_the_next_command(bench: Bench) -> None:
    with bench.endpoint(servers=60, service_s=0.005) as endpoint:
        running = bench.start("--client-rps", 300, "--obs-time", 60, "--workers", 2, *NONE, target=endpoint)
        running.wait_for_arrivals(endpoint, 750)
        running.kill_all()
        killed = time.monotonic_ns()
        running.finish()
        log = endpoint.arrivals()
    wave = bench.report(running.run_dirs()[0])
    long_before = killed - 2 * NS  # reports are half a second apart
    reported = [at for at in log["answered_ns"] if at is not None and at < long_before]
    assert 0 < len(reported) <= wave.ledger["ok"] <= len(ids(log))
    assert wave.summary["latency"]["count"] == wave.ledger["ok"]
    assert wave.ledger["scheduled"] == 18_000
    assert {"primary_lost", "worker_lost"} <= wave.invalid
    assert (wave.folder / "counts.parquet").exists()
    assert not (wave.folder / "spool.bin").exists()
