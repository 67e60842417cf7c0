"""The adaptive wave, and another one with more workers where the client was its limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from server_capacity.experiments.capacity.pilot import CapacityPilot
from server_capacity.experiments.measurements.client_limit import queueing
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.measurements.in_users import search_of
from server_capacity.results.types.standing import EARLY
from server_capacity.search.stretch import CLIENT

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question


_BREAKS_OFF = ("primary_lost", "worker_lost", "disk_full")


def explore(question: Question, waves: Waves) -> SearchEvidence:
    """Search for the capacity; where a client with more workers may do more, the search goes on in another wave."""
    search = search_of(question)
    found = SearchEvidence(question.plan.workers)
    rate = question.offerable(search.first_rate)
    while True:
        more = found.workers < question.most_workers
        pilot = CapacityPilot(search, question, rate, found.stretches, found.next_place, more_workers=more)
        try:
            wave = waves.explore(question.exploration(float(rate), found.workers, waves.folder), pilot)
        except KeyboardInterrupt:  # before it began
            if not found.rows:
                raise
            found.interrupted = True
            return found
        except BenchmarkError as error:
            if not found.rows:
                raise
            found.failures.append(f"{EARLY}{error}")
            return found
        stages = [pilot.named(each) for each in count_stages(wave, question.limits, question.user_limits)]
        lost = question.lost()
        if lost or (wave.lost_workers and not wave.primary_lost):
            stages = [_spoilt(each, lost or f"{CLIENT}: a worker was lost in this wave") for each in stages]
        found.add(wave, stages)
        found.leave_out_warm_up()
        found.leave_out_slow_down(question)
        found.queueing = queueing(wave, stages) or found.queueing
        found.interrupted = wave.interrupted
        if broken := lost or broken_off(wave):
            found.failures.append(f"{EARLY}{broken}.")
            found.client_limit = broken
            return found
        if wave.interrupted or pilot.client_limit is None:
            return found
        if not more:
            found.client_limit = pilot.client_limit
            return found
        found.workers = min(2 * found.workers, question.most_workers)
        clean = [stretch.rate for stretch in found.stretches if stretch.rate > 0 and not stretch.void]
        rate = question.offerable(clean[-1] if clean else search.first_rate)
        waves.say(f"{pilot.client_limit[:1].upper()}{pilot.client_limit[1:]}. It goes on with {found.workers} workers.")


def broken_off(wave: Wave) -> str:
    """The words of the finding on what ended a wave, or a part of it, before its time; empty where nothing did."""
    findings = (each for each in wave.verdict.findings if each.code in _BREAKS_OFF)
    return next((each.measured for each in findings), "")


def _spoilt(stage: Counted, why: str) -> Counted:
    """Nobody knows from when on a worker that was lost sent nothing, or an endpoint that was lost answered nothing."""
    return replace(stage, stretch=replace(stage.stretch, void=why))
