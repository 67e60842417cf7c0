"""A rate that is changed while the wave runs, judged by the log of the endpoint and by what was stored."""

from __future__ import annotations

import json
import signal
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import psutil
import pytest

from inference_benchmarker import BenchmarkError, Bounds, OpenLoop, Wave, WavePlan, run_wave
from inference_benchmarker.engine.pilot import End, Order, Rate
from inference_benchmarker.plan.pacing import TokenBucket
from tests.bench import FACTORIES, OF_A_BUSY_MACHINE, SENDER, Bench
from tests.parts import in_memory
from tests.steered import Script, Watching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.plan.load import Arrivals

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sender.py").write_text(SENDER)
    (tmp_path / "factories.py").write_text(FACTORIES)
    return tmp_path


def steered(folder: Path, arrivals: Arrivals = "constant", **more: object) -> WavePlan:
    load = OpenLoop(Decimal(100), arrivals, steered=True)
    values = {"bounds": Bounds(), "workers": 2, "output_dir": folder / "runs", "seed": 3, **more}
    return WavePlan(load, factories_file=folder / "factories.py", **values)  # type: ignore[arg-type]


def run_in_time(run: Callable[[], Wave]) -> Wave:
    """The first wave of which every worker heard in time: on a very busy machine one may not."""
    for _ in range(3):
        wave = run()
        if not wave.ledger.late_changes:
            return wave
    raise AssertionError(wave.text())


@pytest.mark.parametrize(("arrivals", "workers"), [("constant", 3), pytest.param("poisson", 2, marks=pytest.mark.slow)])
def test_what_is_sent_is_what_the_stages_say(
    folder: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, arrivals: Arrivals, workers: int
) -> None:
    random = Random(workers)
    changes: list[tuple[float, Order]] = [
        (0.1 + place * 0.06, Rate(Decimal(random.choice(("0", "7.3", "90.9", "300", "0.5"))))) for place in range(20)
    ]
    with bench.endpoint(service="none") as endpoint:
        monkeypatch.setenv("TARGET", endpoint.url)
        before, watching = 0, Watching()

        def run() -> Wave:
            nonlocal before
            before = len(endpoint.arrivals()["sequence"])
            plan = steered(folder, arrivals, workers=workers, warmup_s=Decimal("0.2"))
            return run_wave(plan, watching, pilot=Script([(-9, Rate(Decimal(999))), *changes, (1.5, End())]))

        wave = run_in_time(run)
        arrived = sorted(endpoint.arrivals()["queued_ns"])[before:]
    planned = sorted(tuple(each) for worker in range(workers) for each in TokenBucket.of(wave.plan).arrivals(worker))
    rows = zip(*(in_memory(wave.records).int(name).tolist() for name in ("index", "due")), strict=True)
    assert [(index, due) for index, due in planned if index >= 0] == list(rows)
    assert len(arrived) == len(planned), "each arrival once, and the warm-up at the first rate"
    dues = sorted(due for _, due in planned)
    assert all(seen - wave.window.t0_monotonic_ns >= due for seen, due in zip(arrived, dues, strict=True))
    assert isinstance(wave.plan.load, OpenLoop)
    assert 10 < len(wave.plan.load.stages) <= 21
    assert not {finding.code for finding in wave.verdict.findings if finding.severity == "invalid"} - OF_A_BUSY_MACHINE
    dues_sent = in_memory(wave.records).int("due").tolist()
    rows_of = Counter(bisect_right(wave.plan.load.stage_ends_ns, due) for due in dues_sent)
    feed = watching.spool_state.feed
    assert {number: feed.stage(number).sent for number in rows_of} == rows_of, "stages of the feed are those offered"
    assert wave.verdict.exit_code in (0, 3)
    assert wave.window.stopped_at_ns is None
    assert wave.run_dir is not None
    stored = json.loads(wave.run_dir.plan.read_text())
    assert WavePlan.from_json(stored).load == wave.plan.load
    assert [row["name"] for row in wave.to_json()["stages"]] == list(wave.plan.load.stage_names)
    assert Wave.load(wave.run_dir.path).to_json() == wave.to_json()
    assert "environment" in stored


def signal_worker(number: signal.Signals) -> None:
    """Signal one worker of the wave that this process runs."""
    children = psutil.Process().children(recursive=True)
    lines = ((each, each.as_dict(["cmdline"])["cmdline"] or ()) for each in children)  # one that has ended has none
    workers = [each for each, line in lines if "inference_benchmarker.engine.worker" in line]
    workers[-1].send_signal(number)


@pytest.mark.parametrize("order", [Rate(Decimal(200)), pytest.param(End(), marks=pytest.mark.slow)])
def test_a_worker_that_was_held_up_over_a_change_says_so(
    folder: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, order: Order
) -> None:
    held_up = partial(signal_worker, signal.SIGSTOP), partial(signal_worker, signal.SIGCONT)
    script = Script([(0.2, order), (0.6, Rate(Decimal(200))), (0.9, End())], act={0: held_up[0], 1: held_up[1]})
    with bench.endpoint(service="none") as endpoint:
        monkeypatch.setenv("TARGET", endpoint.url)
        wave = run_wave(steered(folder), pilot=script)
    assert sorted(ledger.late_changes for ledger in wave.ledgers) == [0, 1]
    codes = {finding.code for finding in wave.verdict.findings}
    assert "schedule_late" in codes
    assert "ledger_broken" not in codes
    assert wave.verdict.exit_code == 3
    assert wave.run_dir is not None
    assert Wave.load(wave.run_dir.path).ledger == wave.ledger


@pytest.mark.slow
def test_whoever_hears_late_of_an_end_in_the_warm_up_has_sent_nothing_wrong(
    folder: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up = partial(signal_worker, signal.SIGSTOP), partial(signal_worker, signal.SIGCONT)
    script = Script([(-1.8, End()), (-1.2, Rate(Decimal(5)))], act={0: held_up[0], 1: held_up[1]})
    with bench.endpoint(service="none") as endpoint:
        monkeypatch.setenv("TARGET", endpoint.url)
        wave = run_wave(steered(folder, warmup_s=Decimal(2)), pilot=script)
    assert (wave.ledger.scheduled, wave.ledger.late_changes) == (0, 0)


@pytest.mark.slow
def test_a_pilot_that_fails_ends_the_wave_and_its_records_stay(
    folder: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    script = Script([(0.2, Rate(Decimal(300))), (1.2, End())], act={1: fail})
    with bench.endpoint(service="none") as endpoint:
        monkeypatch.setenv("TARGET", endpoint.url)
        with pytest.raises(ZeroDivisionError):
            run_wave(steered(folder), pilot=script)
    wave = Wave.load(next((folder / "runs").iterdir()))
    assert isinstance(wave.plan.load, OpenLoop)
    assert [stage.to_rps for stage in wave.plan.load.stages] == [100, 300]
    assert wave.ledger.sent > 100


def test_only_a_steered_load_has_a_pilot_and_each_has_one(folder: Path) -> None:
    with pytest.raises(BenchmarkError, match="give run_wave a pilot"):
        run_wave(steered(folder))
    settled = replace(steered(folder), load=OpenLoop(Decimal(5)), bounds=Bounds(Decimal(1)))
    with pytest.raises(BenchmarkError, match="steered=True"):
        run_wave(settled, pilot=Script([]))


@pytest.mark.parametrize("rate", ["-1", "NaN", "1000001", "0.0000001"])
def test_an_order_of_a_rate_that_no_stage_may_have_cannot_be_made(rate: str) -> None:
    with pytest.raises(ValueError, match="must be 0 or from"):
        Rate(Decimal(rate))
