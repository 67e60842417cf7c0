"""What the tool adds to a time: the runs that measure it, what they say, and that they leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client_capacity.calibration import ECHO, NULL, calibration_bounds, calibration_plan
from client_capacity.overhead import Calibration, Run, Times
from inference_benchmarker import cli
from inference_benchmarker.data.json_file import read_json
from inference_benchmarker.engine.endpoint.factories_file import load
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.run_dir import RunDir
from tests.bench import MARK, ROOT, Bench, Running

if TYPE_CHECKING:
    from inference_benchmarker.plan.load import Arrivals

PLAN = WavePlan(OpenLoop(Decimal(200)), Bounds(Decimal(600)), factories_file=NULL, workers=2)
RUN = Run(
    requests=200,
    workers=2,
    target_rate=100.0,
    rate=100.0,
    in_time_share=1.0,
    latency=Times(0.00045, 0.0009, 0.002),
    response=Times(0.00006, 0.00031, 0.001),
    lag=Times(0.00005, 0.0003, 0.0009),
    worker_cpu_share=0.05,
)
CLOSED = replace(RUN, requests=20_000, target_rate=None, rate=40_000.0, response=None, lag=None)

PROGRAM = """
import json
from decimal import Decimal
from pathlib import Path
from client_capacity.calibration import calibrate
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan

open(FILE, "w").write("def invoke_factory(): 1 / 0\\ndef payload_factory(): 1 / 0\\n")
plan = WavePlan(OpenLoop(Decimal(200)), Bounds(Decimal(600)), factories_file=Path(FILE), port=PORT)
try:
    print(json.dumps(calibrate(plan).to_json()))
except KeyboardInterrupt:
    print("interrupted")
"""


def calibrating(bench: Bench, port: int) -> Running:
    """A program that calibrates, with a temporary folder of its own; the plan's own endpoint cannot be loaded."""
    folder, mark = bench.folder(), uuid.uuid4().hex
    (folder / "tmp").mkdir()
    program = PROGRAM.replace("FILE", repr("broken.py")).replace("PORT", str(port))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp"), MARK: mark}
    with (folder / f"{mark}.out").open("wb") as out, (folder / f"{mark}.err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", program], cwd=folder, env=environment, stdout=out, stderr=err
        )
    return Running(process, folder, mark)


def temporary(running: Running) -> list[Path]:
    """What is in the program's temporary folder."""
    return list((running.folder / "tmp").iterdir())


@pytest.mark.process
def test_both_runs_offer_the_plans_load_and_leave_nothing_behind(bench: Bench) -> None:
    running = calibrating(bench, port=6301)
    done = running.finish()
    assert done.code == 0, done.err
    assert temporary(running) == []
    found = Calibration.from_json(json.loads(done.out))
    assert found.null is not None
    assert found.echo is not None
    for run in (found.null, found.echo):
        assert (run.requests, run.workers, run.target_rate) == (400, 1, 200.0)
        assert run.rate == pytest.approx(200.0, rel=0.05), "an answer that a busy machine delays counts later"
        assert run.kept_up
        for times in (run.latency, run.response, run.lag):
            assert times is not None
            assert 0 <= times.p50_s <= times.p99_s <= times.max_s
    assert found.null.latency is not None
    assert found.echo.latency is not None
    assert found.null.latency.p50_s < found.echo.latency.p50_s
    assert found.null.response is not None
    assert found.echo.response is not None
    assert found.null.response.p50_s < found.echo.response.p50_s
    assert len(found.lines()) == 2


@pytest.mark.process
def test_an_interrupt_ends_a_calibration_and_all_of_it(bench: Bench) -> None:
    running = calibrating(bench, port=6321)
    running.wait_for(lambda: list(running.folder.glob("tmp/*/*/spool.bin")), "the first run")
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.out == "interrupted\n", done.err
    assert temporary(running) == []


@pytest.mark.process
def test_a_wave_keeps_what_its_calibration_found(tmp_path: Path) -> None:
    plan = replace(PLAN, bounds=Bounds(None, 5), workers=1, output_dir=tmp_path, port=6341)
    found = Calibration(RUN, None)
    wave = run_wave(plan, calibration=found.to_json())
    assert wave.run_dir is not None
    stored = read_json(RunDir.find(wave.run_dir.path).plan)["calibration"]
    assert Calibration.from_json(stored) == found


@pytest.mark.parametrize(
    ("rate", "seconds", "arrivals"),
    [
        ("0.1", 5, 1),
        ("1", 5, 5),
        ("3", 5, 15),
        ("4", 5, 20),
        ("7.3", 2.74, 20),
        ("9.999999", 2, 20),
        ("10", 2, 20),
        ("200", 2, 400),
        ("0.000001", 5, 1),
        ("15000", 2, 20_000),
        ("1000000", 2, 20_000),
    ],
)
def test_a_calibration_holds_enough_requests_and_not_too_many(rate: str, seconds: float, arrivals: int) -> None:
    plan = replace(PLAN, load=OpenLoop(Decimal(rate)))
    derived = calibration_plan(plan, NULL, Path("runs"))
    assert float(derived.bounds.duration_s or 0) == pytest.approx(seconds, abs=0.01)
    assert sum(TokenBucket.of(derived).count()) == arrivals
    assert derived.warmup_s <= Decimal("0.5")
    assert derived.warmup_s * Decimal(rate) <= 5_000
    assert problems_of(derived) == []


def test_a_closed_loop_at_full_speed_is_bounded_by_time_and_number() -> None:
    plan = replace(PLAN, load=ClosedLoop(8), bounds=Bounds(None, 3))
    assert calibration_bounds(plan) == Bounds(Decimal(2), 20_000)
    assert calibration_plan(plan, NULL, Path("runs")).warmup_s == Decimal("0.5")


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_what_makes_the_load_is_the_plans_and_nothing_else(arrivals: Arrivals) -> None:
    base = WavePlan(
        OpenLoop(Decimal(50), arrivals),
        Bounds(Decimal(600)),
        workers=3,
        seed=11,
        max_in_flight=40,
        request_timeout_s=Decimal(7),
        port=6000,
    )
    plan = replace(
        base,
        locust_file=ECHO,
        url="http://127.0.0.1:9",
        warmup_s=Decimal(30),
        slos=(Slo.parse("p99<1ms"),),
        ui=True,
        sample_client_hw=True,
        records="none",
        name="the name",
    )
    derived = calibration_plan(plan, ECHO, Path("runs"), "http://127.0.0.1:8080")
    expected = replace(
        base,
        bounds=Bounds(Decimal(2), 20_000),
        factories_file=ECHO,
        endpoint_name="http://127.0.0.1:8080",
        warmup_s=Decimal("0.5"),
        drain_timeout_s=Decimal(5),
        success_threshold=0.0,
        output_dir=Path("runs"),
    )
    assert derived == expected
    assert problems_of(derived) == []


def test_the_null_endpoint_does_nothing() -> None:
    endpoint = load(NULL)
    assert endpoint.payloads is not None
    assert endpoint.invoke(endpoint.payloads[0]) is None


@pytest.mark.parametrize(
    ("null", "echo", "lines"),
    [
        (
            RUN,
            RUN,
            [
                "this tool adds p50 0.06 ms, p99 0.31 ms at 100/s on this host (an invoke that does nothing, 200 "
                "requests)",
                "a local echo answers in p50 0.45 ms, p99 0.9 ms",
            ],
        ),
        (
            replace(RUN, requests=1, target_rate=0.1),
            replace(RUN, requests=99),
            [
                "this tool adds p50 0.06 ms, max 0.31 ms at 0.1/s on this host (an invoke that does nothing, 1 "
                "request)",
                "a local echo answers in p50 0.45 ms, max 0.9 ms",
            ],
        ),
        (
            replace(RUN, requests=20_000, target_rate=1e6, in_time_share=0.412),
            replace(RUN, requests=20_000, target_rate=1e6, in_time_share=0.0, latency=None),
            [
                "this tool cannot send 1,000,000/s with 2 workers on this host (41% of 20,000 requests answered in "
                "time by an invoke that does nothing)",
                "a local echo could not keep up with 1,000,000/s (0% of 20,000 requests answered in time): no "
                "figure for that",
            ],
        ),
        (
            CLOSED,
            replace(CLOSED, rate=8_000.0),
            [
                "this tool uses 0.05 ms of a worker's time per request on this host (an invoke that does nothing, "
                "20,000 requests at full speed, 40,000/s)",
                "a local echo answers in p50 0.45 ms, p99 0.9 ms at full speed (8,000/s)",
            ],
        ),
        (None, RUN, ["a local echo answers in p50 0.45 ms, p99 0.9 ms"]),
        (
            None,
            None,
            ["the overhead of this tool is not known: the calibration was too short for a request at this rate"],
        ),
    ],
)
def test_what_a_calibration_says(null: Run | None, echo: Run | None, lines: list[str]) -> None:
    assert list(Calibration(null, echo).lines()) == lines


@pytest.mark.parametrize("found", [Calibration(RUN, CLOSED), Calibration(None, RUN), Calibration(None, None)])
def test_a_calibration_survives_json(found: Calibration) -> None:
    data = json.loads(json.dumps(found.to_json()))
    assert data["lines"] == list(found.lines())
    assert Calibration.from_json(data) == found


def test_a_locust_file_has_nothing_to_compare_with(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "users.py"
    file.write_text("")
    flags = f"--locust-file {file} --url http://127.0.0.1:9 --client-rps 1 --obs-time 1 --calibrate"
    assert cli.main(flags.split()) == 2
    assert "--calibrate measures the overhead with a factories file" in capsys.readouterr().err
