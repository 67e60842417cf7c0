"""The search for a capacity from its question to its answer, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.engine.hosts.logins import keeping_logins
from inference_benchmarker.engine.launch import resolve
from inference_benchmarker.engine.processes.interrupts import counting_interrupts
from inference_benchmarker.errors import refuse
from inference_benchmarker.plan.problems import problems_of
from inference_benchmarker.wave.run_dir import make_stamped_folder
from server_capacity.experiments.capacity.confirmation import confirm, needs_another, unless_over, unless_refuted
from server_capacity.experiments.capacity.exploration import explore
from server_capacity.experiments.capacity.modelling import twin_of
from server_capacity.experiments.capacity.narrowing import narrowed
from server_capacity.experiments.capacity.result import content
from server_capacity.experiments.capacity.scouting import scout
from server_capacity.experiments.capacity.warming import warm
from server_capacity.experiments.measurements.client_limit import without_queueing
from server_capacity.experiments.measurements.user_count_search import answer_of
from server_capacity.experiments.measurements.user_limits import users_estimates
from server_capacity.experiments.measurements.windows import predicted_windows, soak_of, windows_of
from server_capacity.experiments.server_side.server_attachment import (
    attach_server_metrics,
    disturbed_confirmations,
    with_limits_of_server,
)
from server_capacity.experiments.server_side.server_side import waited
from server_capacity.models.twin.result_section import refused
from server_capacity.results.capacity_folder import save
from server_capacity.results.text.headline import headline
from server_capacity.results.types.result_status import EARLY
from server_capacity.results.types.search_waves import Payloads
from server_capacity.search.slow_down import SLOWER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inference_benchmarker.engine.processes.interrupts import Interrupts
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.confirmed import Confirmed
    from server_capacity.experiments.measurements.evidence import SearchEvidence
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.twin import Twin
    from server_capacity.search.answer import Answer

KIND = "capacity"


class Searched(NamedTuple):
    """A search that is over: its answer, and what that was taken from; ``asked``: its question in the end."""

    found: CapacityResult
    explored: SearchEvidence
    confirmed: list[Confirmed]
    asked: Question | None = None


def make_folder(question: Question, kind: str = KIND) -> Path:
    """``<UTC timestamp>_capacity/``, or that of another ``kind``.

    Every cheap problem is raised before it is made, as one BenchmarkError.
    """
    plan = question.exploration(1.0, question.plan.workers, question.plan.output_dir)
    refuse([problem.text for problem in problems_of(plan)])
    resolve(plan)
    return make_stamped_folder(question.plan.output_dir, kind)


def find_capacity(question: Question, waves: Waves) -> CapacityResult:
    """Search, confirm, and write down what was found.

    KeyboardInterrupt where it was interrupted before anything was measured; later it ends with what is known.
    """
    return search_with(question, waves).found


def search_with(
    question: Question, waves: Waves, known: Callable[[Question], SearchEvidence] | None = None
) -> Searched:
    """The same with what the answer was taken from. ``known``: what was measured before, as this question counts it."""
    with counting_interrupts() as interrupts, keeping_logins():
        warming = warm(question, waves) if question.warm and known is None else []
        if question.scouts:
            question, first = scout(question, waves)
            warming.append(first)
        explored = explore(question, waves, None if known is None else known(question))
        explored.warming = warming
        found = narrowed(question, waves, explored, lambda: _answer(question, explored), interrupts)
        save(waves.folder, replace(content(question, explored, found, []), payloads=payloads(waves)))
        confirmed = _confirmed(question, waves, explored, found, interrupts)
        found = _answer(question, explored, confirmed)
        if waves.server.sources and not explored.interrupted and not interrupts.count:
            found, confirmed = _with_server(question, waves, explored, confirmed, interrupts)
        found = unless_over(question, unless_refuted(found, confirmed, question.unit), confirmed)
        whole = save(waves.folder, _whole(question, waves, explored, found, confirmed))
        return Searched(whole, explored, confirmed, question)


def _whole(
    question: Question, waves: Waves, explored: SearchEvidence, found: Answer, confirmed: list[Confirmed]
) -> CapacityResult:
    """The result with what is computed from the waves beside the answer."""
    modelled = confirmed and not explored.interrupted
    return replace(
        content(question, explored, found, confirmed),
        payloads=payloads(waves),
        windows=windows_of(confirmed, question.limits)
        or (predicted_windows(found, question.limits) if question.is_of_rates else None),
        soak=soak_of(confirmed, question.limits),
        twin=_twin(question, explored, confirmed) if modelled else None,
    )


def _twin(question: Question, explored: SearchEvidence, confirmed: Sequence[Confirmed]) -> Twin:
    if explored.slower is not None:
        return refused(SLOWER)
    return twin_of(question, explored.adaptive, confirmed)


def payloads(waves: Waves) -> Payloads | None:
    """Tells how often each pre-computed payload was sent; None where they are built for each request."""
    if waves.payloads is None:
        return None
    return Payloads(waves.payloads, waves.sent / waves.payloads, waves.sent > waves.payloads)


def _confirmed(
    question: Question, waves: Waves, explored: SearchEvidence, found: Answer, interrupts: Interrupts
) -> list[Confirmed]:
    """The waves at the lower end; one that fails joins the evidence, and there is another one, further down.

    One that was spoilt is tried again, once.
    """
    confirmed: list[Confirmed] = []
    while not explored.interrupted and not interrupts.count and needs_another(confirmed):
        wave = confirm(question, waves, found, explored)
        if wave is None:
            break
        confirmed.append(wave)
        explored.interrupted = wave.wave.interrupted
        if lost := question.lost():
            explored.failures.append(f"{EARLY}{lost}.")
            break
        if wave.judgement != "fails":
            continue
        explored.add(wave.wave, [wave.stage])
        explored.leave_out_slow_down(question)
        found = _answer(question, explored, confirmed)
    explored.interrupted = explored.interrupted or interrupts.count > 0
    return confirmed


def _with_server(
    question: Question, waves: Waves, explored: SearchEvidence, confirmed: list[Confirmed], interrupts: Interrupts
) -> tuple[Answer, list[Confirmed]]:
    """The answer and the confirmations once the server's metrics are there.

    A limit on them that is violated first is confirmed once, too: no search can wait for CloudWatch at each step.
    """
    for again in (True, False):
        if waves.server.waits and again:
            early = _answer(question, explored, confirmed)
            waves.announce(headline(replace(content(question, explored, early, confirmed), pending=True)))
        confirmed = waited(waves.server, explored, confirmed, interrupts)
        found = _answer(question, explored, confirmed, final=True)
        confirmed = disturbed_confirmations(confirmed, explored)
        names = {limit.expression for limit in question.plan.server_limits}
        if not again or found.limit not in names or explored.interrupted or interrupts.count:
            break
        if any(each.stage.stretch.rate <= (found.rate or 0.0) for each in confirmed):
            break
        wave = confirm(question, waves, found, explored)
        if wave is None:
            break
        confirmed.append(wave)
        explored.interrupted = wave.wave.interrupted
    return found, confirmed


def _answer(
    question: Question, explored: SearchEvidence, confirmed: Sequence[Confirmed] = (), *, final: bool = False
) -> Answer:
    """The answer, from what was counted by when requests were due, and what the server reported.

    Until it is the ``final`` one, limits on metrics that have not come yet are left open.
    """
    attached = attach_server_metrics(question.plan.server_limits, explored, confirmed)
    found = without_queueing(answer_of(question, explored.stretches), explored.queueing)
    of_users = users_estimates(question, explored)
    return with_limits_of_server(found, [*of_users, *(attached.estimates if final else attached.known)])
