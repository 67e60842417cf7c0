"""The adaptive wave, and another one with more workers where the client was its limit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError, NoWaveError
from server_capacity.experiments.capacity.confirmation import judgements
from server_capacity.experiments.capacity.pilot import CapacityPilot
from server_capacity.experiments.measurements.client_limit import queueing, void_if_late
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.measurements.user_count_search import search_of
from server_capacity.results.types.result_status import EARLY
from server_capacity.search.stretch import CLIENT
from server_capacity.search.users import UserSearch

if TYPE_CHECKING:
    from decimal import Decimal

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.measurements.user_count_search import AnySearch


_BREAKS_OFF = ("loopback_down", "primary_lost", "worker_lost", "disk_full")


def explore(question: Question, waves: Waves, known: SearchEvidence | None = None) -> SearchEvidence:
    """Search for the capacity; where a client with more workers may do more, the search goes on in another wave.

    ``known``: what was measured for another tier, compared with these limits, with which it begins.
    """
    search = search_of(question)
    found = known or SearchEvidence(question.plan.workers)
    rate = _first_rate(question, search, found)
    while rate is not None:
        more = found.workers < question.most_workers
        pilot = CapacityPilot(search, question, rate, found.stretches, found.next_place, more_workers=more)
        wave = _sent(question, waves, found, rate, pilot)
        if wave is None or _add_wave(question, found, wave, pilot):
            break
        rate = _next_rate(question, found, search, pilot.client_limit)
        if rate is not None and pilot.client_limit is not None:
            why = f"{pilot.client_limit[:1].upper()}{pilot.client_limit[1:]}"
            waves.say(f"{why}. Continuing with {found.workers} workers.")
    return found


def _first_rate(question: Question, search: AnySearch, found: SearchEvidence) -> Decimal | None:
    """The rate with which it begins; None where enough is known already."""
    if not found.rows or isinstance(search, UserSearch):
        return question.offerable(search.first_rate)
    first = search.resume(found.stretches)
    return None if first == "end" else question.offerable(first)


def _sent(question: Question, waves: Waves, found: SearchEvidence, rate: Decimal, pilot: CapacityPilot) -> Wave | None:
    """The next wave of the search; None where it never began, and the waves before have to do."""
    try:
        return waves.explore(question.exploration(float(rate), found.workers, waves.folder), pilot)
    except KeyboardInterrupt:
        if not found.rows:
            raise
        found.interrupted = True
    except (BenchmarkError, NoWaveError) as error:
        if not found.rows:
            raise
        found.failures.append(f"{EARLY}{error.event if isinstance(error, NoWaveError) else error}")
    return None


def _add_wave(question: Question, found: SearchEvidence, wave: Wave, pilot: CapacityPilot) -> str:
    """Add a wave to the evidence, and return the words of what broke it off; empty where nothing did."""
    stages = [pilot.named(each) for each in count_stages(wave, question.limits, question.user_limits)]
    stages = void_if_late(question, wave, stages, partial(judgements, question))
    lost = question.lost()
    if lost or (wave.lost_workers and not wave.primary_lost):
        stages = [_spoilt(each, lost or f"{CLIENT}: a worker was lost in this wave") for each in stages]
    found.add(wave, stages)
    found.leave_out_warm_up(question)
    found.leave_out_slow_down(question)
    found.queueing = queueing(wave, stages) or found.queueing
    found.interrupted = wave.interrupted
    broken = lost or broken_off(wave)
    if broken:
        found.failures.append(f"{EARLY}{broken}.")
        found.client_limit = broken
    return broken


def _next_rate(
    question: Question, found: SearchEvidence, search: AnySearch, client_limit: str | None
) -> Decimal | None:
    """The rate at which the search goes on with twice the workers; None: it is over, or the client can do no more."""
    if found.interrupted or client_limit is None:
        return None
    if found.workers >= question.most_workers:
        found.client_limit = client_limit
        return None
    found.workers = min(2 * found.workers, question.most_workers)
    clean = [stretch.rate for stretch in found.stretches if stretch.rate > 0 and not stretch.void]
    return question.offerable(clean[-1] if clean else search.first_rate)


def broken_off(wave: Wave) -> str:
    """The words of the finding on what ended a wave, or a part of it, before its time; empty where nothing did."""
    findings = (each for each in wave.verdict.findings if each.code in _BREAKS_OFF)
    return next((each.named for each in findings), "")


def _spoilt(stage: Counted, why: str) -> Counted:
    """Nobody knows from when on a worker that was lost sent nothing, or an endpoint that was lost answered nothing."""
    return replace(stage, stretch=replace(stage.stretch, void=why))
