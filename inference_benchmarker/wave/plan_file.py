"""``plan.json``, and the due times of a recording beside it: written before a wave begins, read by its processes.

Little else is loaded here: the processes of the wave wait for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_file import write_json
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.wave.run_dir import MADE_AS

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir


def save_plan(run_dir: RunDir, plan: WavePlan, facts: dict[str, Any]) -> None:
    """Write ``plan.json``: the plan without its secrets, and ``facts``: with what and where it is run.

    The environment also has the name of the directory, by which a copy is known. The due times of a recording stand
    beside it.
    """
    environment = {**facts.get("environment", {}), MADE_AS: run_dir.path.name}
    write_json(run_dir.plan, {**plan.public_json(), **facts, "environment": environment})
    if isinstance(plan.load, OpenLoop) and plan.load.replay is not None:
        from inference_benchmarker.recording.schedule import RecordedSchedule  # numpy, which other waves do without

        assert isinstance(plan.load.replay.schedule, RecordedSchedule)
        plan.load.replay.schedule.write_to(run_dir.arrivals)


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
