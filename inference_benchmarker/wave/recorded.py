"""The plan of a wave that replays a recording, with its due times where the run directory has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import OpenLoop

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir


def scheduled(plan: WavePlan, run_dir: RunDir) -> WavePlan:
    """The plan of a run directory with the due times of its recording, if it has one; ValueError for others' times."""
    if not isinstance(plan.load, OpenLoop) or plan.load.replay is None:
        return plan
    from inference_benchmarker.recording.schedule import RecordedSchedule  # numpy, which other workers do without

    replay, recording = plan.load.replay, plan.load.replay.recording
    if recording is None:
        raise ValueError("its recording was not read")
    schedule = RecordedSchedule.open(run_dir.arrivals, recording.length_ns, recording.rows)
    return replace(plan, load=replace(plan.load, replay=replace(replay, schedule=schedule)))
