"""Measures what this tool itself adds, before a wave: the plan's load against nothing, and against a local echo."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import inference_benchmarker
from client_capacity.overhead import Calibration, Run
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.launch import resolve, run_wave
from inference_benchmarker.engine.processes.interrupts import Interrupts, counting_interrupts
from inference_benchmarker.engine.processes.scratch import scratch_folder
from inference_benchmarker.engine.progress_listener import NullView
from inference_benchmarker.errors import BenchmarkError, LostProcessError
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import ALL

if TYPE_CHECKING:
    from inference_benchmarker.engine.progress_listener import Live
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.wave import Wave

CALIBRATION_S = Decimal(2)
LONGEST_S = Decimal(5)
WARMUP_S = Decimal("0.5")
DRAIN_S = Decimal(5)
LEAST_REQUESTS = 20
MOST_REQUESTS = 20_000
MOST_WARMUP_REQUESTS = 5_000

# By path, never imported: this process must not be patched
_FACTORIES = Path(inference_benchmarker.__file__).parent / "clients" / "calibration"
NULL, ECHO = _FACTORIES / "null.py", _FACTORIES / "echo.py"


def calibrate(plan: WavePlan, live: Live | None = None) -> Calibration:
    """Run the plan's load for a few seconds against an invoke that does nothing, and against a local echo.

    Raises BenchmarkError for a plan that cannot run, RuntimeError where a process was lost, KeyboardInterrupt if
    interrupted: nothing of the plan's own wave was sent then. Leaves no files.
    """
    plan = resolve(plan)  # the seed is drawn here, so that both runs have the same arrivals
    seconds = calibration_bounds(plan).duration_s
    (live or NullView()).say(f"Calibrating: up to {seconds:.2g} s without an endpoint, then with a local echo server.")
    with scratch_folder("benchmark_calibration_") as folder, counting_interrupts() as interrupts:
        null = _run(calibration_plan(plan, NULL, folder), interrupts)
        with start(EndpointConfig(servers=1, service="none")) as endpoint:  # one that takes no time is always free
            echo = _run(calibration_plan(plan, ECHO, folder, endpoint.url), interrupts)
        _heed(interrupts)
    return Calibration(null, echo)


def calibration_plan(plan: WavePlan, factories: Path, folder: Path, endpoint_name: str | None = None) -> WavePlan:
    """The plan's load, processes and per-request work against another endpoint, with no limits to meet.

    The records are kept where the plan's are not: what is reported is exact, and of few requests.
    """
    return replace(
        plan,
        load=OpenLoop(plan.load.peak_rps, plan.load.arrivals) if isinstance(plan.load, OpenLoop) else plan.load,
        bounds=calibration_bounds(plan),
        factories_file=factories,
        endpoint_name=endpoint_name,
        locust_file=None,
        url=None,
        warmup_s=_warmup_s(plan),
        drain_timeout_s=DRAIN_S,
        success_threshold=0.0,
        slos=(),
        ui=False,
        sample_client_hw=False,
        records=ALL,
        output_dir=folder,
        name=None,
    )


def calibration_bounds(plan: WavePlan) -> Bounds:
    """``CALIBRATION_S`` of sending; longer, up to ``LONGEST_S``, where too few requests would fall into it."""
    seconds = CALIBRATION_S
    if isinstance(plan.load, OpenLoop):
        seconds = min(LONGEST_S, max(CALIBRATION_S, LEAST_REQUESTS / plan.load.peak_rps))
    return Bounds(seconds, MOST_REQUESTS)


def _warmup_s(plan: WavePlan) -> Decimal:
    """Enough for what is done once; bounded, or a rate that cannot be kept would begin with a backlog."""
    if isinstance(plan.load, OpenLoop):
        return min(WARMUP_S, MOST_WARMUP_REQUESTS / plan.load.peak_rps)
    return WARMUP_S


def _run(plan: WavePlan, interrupts: Interrupts) -> Run | None:
    _heed(interrupts)
    wave = run_wave(plan, NullView())
    _check(wave)
    return Run.of(wave, wave.summary)


def _heed(interrupts: Interrupts) -> None:
    """Act on an interrupt that came between waves, when nothing is left half done."""
    if interrupts.count:
        raise KeyboardInterrupt


def _check(wave: Wave) -> None:
    """Refuse a wave that would make a calibration's numbers someone else's."""
    if wave.interrupted:
        raise KeyboardInterrupt
    if wave.disk_error is not None:
        raise BenchmarkError(
            f"The calibration cannot write to {tempfile.gettempdir()} ({wave.disk_error}).",
            "Free some space there, or run without --calibrate.",
        )
    if wave.primary_lost or wave.lost_workers:
        assert wave.run_dir is not None
        log = wave.run_dir.primary_log if wave.primary_lost else wave.run_dir.worker_log(wave.lost_workers[0])
        tail = log.read_text(errors="replace")[-2000:]  # the log itself goes with the temporary folder
        raise LostProcessError("the calibration lost its primary or a worker", tail)
