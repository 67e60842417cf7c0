"""The proof of a plan from its question to its answer: the target for real, on the instances that are planned."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.engine.launch import resolve
from inference_benchmarker.engine.processes.interrupts import counting_interrupts, until_interrupted
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.plan.problems import problems_of
from inference_benchmarker.wave.run_dir import make_stamped_folder
from server_capacity.experiments.proof.ending import ProofPilot
from server_capacity.experiments.proof.folder import KIND, save
from server_capacity.experiments.proof.judging import judged
from server_capacity.experiments.proof.length import length_of
from server_capacity.experiments.proof.result import content, endpoint_text, instances_there
from server_capacity.planning.remarks import instances_text
from server_capacity.planning.totals import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.experiments.ranking.preflight import Before
    from server_capacity.results.types.proof import ProofResult

RPS_A_WORKER = 250.0
"""Where nobody says how many workers there are to be, there is one for each so many requests/s, up to the cores."""


def make_folder(question: Question, planned: Planned) -> Path:
    """``<UTC timestamp>_proof/``; every cheap problem is raised before it is made, as one BenchmarkError."""
    plan = _wave_plan(question, planned, 1.0, 0.0, question.plan.output_dir)
    refuse([problem.text for problem in problems_of(plan)])
    resolve(plan)
    return make_stamped_folder(question.plan.output_dir, KIND)


def prove(question: Question, planned: Planned, waves: Waves, before: Before) -> ProofResult:
    """Send the target, judge what came of it, and write that down.

    ``before``: what was shown before the endpoint was made. KeyboardInterrupt where it was interrupted before anything
    was sent. BenchmarkError where the endpoint is known to run on instances of another type or number.
    """
    _check_endpoint(question, planned)
    length = length_of(planned, question.limits, question.settings.time_s, waves.server.least_s)
    aim = planned.aim
    fleet = instances_text(aim.instances)
    if instances_there(question.endpoint) is None:
        fleet += f"; the number of instances of {endpoint_text(question.endpoint)} is not known"
    waves.say(f"The plan: {load_text(aim.target_rps)} on {fleet}. {length.sentence()}")
    with counting_interrupts() as interrupts:
        plan = _wave_plan(question, planned, length.seconds, length.warmup_s, waves.folder)
        pilot = ProofPilot(question, planned, length)
        wave = waves.prove(plan, pilot)
        waiting = [wave]
        complete = until_interrupted(lambda: waves.server.wait(waiting, interrupts), interrupts) or waiting
        found = content(question, planned, length, judged(question, planned, complete[0]), ended_early=pilot.why)
        found = replace(found, quotas=before.quotas, spend=before.spend)
        with suppress(BenchmarkError):  # what it is if this command is killed now; the last attempt says what fails
            found = save(waves.folder, found)
        return found


def _check_endpoint(question: Question, planned: Planned) -> None:
    """BenchmarkError where it is known to be no endpoint of the plan: of another instance type, or another number."""
    kind = question.endpoint and question.endpoint.instance_type
    if kind and planned.instance_type and kind != planned.instance_type:
        raise BenchmarkError(
            f"{endpoint_text(question.endpoint)}: runs on {kind}; {planned.file} plans {planned.instance_type}.",
            "Verify the plan on an endpoint of its type, or make a plan from a search of this type.",
        )
    there = instances_there(question.endpoint)
    if there is not None and there != planned.aim.instances:
        raise BenchmarkError(
            f"{endpoint_text(question.endpoint)}: runs on {instances_text(there)}; "
            f"{planned.file} plans {planned.aim.instances}.",
            "Change their number, or make a plan for that number.",
        )


def _wave_plan(question: Question, planned: Planned, seconds: float, warmup_s: float, folder: Path) -> WavePlan:
    rate = planned.aim.target_rps
    workers = max(question.plan.workers, min(question.most_workers, math.ceil(rate / RPS_A_WORKER)))
    plan = question.confirmation(rate, seconds, workers, folder)
    return replace(plan, load=question.load(rate, steered=True), warmup_s=Decimal(f"{warmup_s:.3f}"))
