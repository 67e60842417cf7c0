"""``--cache warm``: every payload is sent once before the search, so that what it measures is a warm cache."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import Bounds, ClosedLoop

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.question import Question

AT_ONCE = 4
MOST_S = Decimal(600)


def warm(question: Question, waves: Waves) -> list[Wave]:
    """The waves that sent every payload once: the first one tells how many there are.

    Raises KeyboardInterrupt where one was interrupted: nothing was measured yet.
    """
    first = _sent(waves, _plan(question, waves, 1, 1))
    if waves.payloads is None:
        waves.say("Payloads are built per request: there is nothing to send before the search.")
        return [first]
    left = waves.payloads - 1
    if not left:
        return [first]
    waves.say(f"Sending each of the {waves.payloads:,} payloads once, to warm caches.")
    rest = _sent(waves, _plan(question, waves, min(AT_ONCE, left), left))
    if rest.ledger.sent < left:
        waves.say(f"Within {MOST_S} s {rest.ledger.sent + 1:,} of them were sent; caches are cold for the rest.")
    return [first, rest]


def _sent(waves: Waves, plan: WavePlan) -> Wave:
    wave = waves.warm(plan)
    if wave.interrupted:
        raise KeyboardInterrupt("Interrupted before the search began; nothing was measured.")
    return wave


def _plan(question: Question, waves: Waves, at_once: int, number: int) -> WavePlan:
    """So many requests, a few at once; nobody limits what a cold cache takes."""
    return replace(
        question.plan.with_workers(1),
        load=ClosedLoop(at_once),
        bounds=Bounds(MOST_S, number),
        max_in_flight=None,
        slos=(),
        server_limits=(),
        goodput=(),
        success_threshold=0.0,
        output_dir=waves.folder,
        name=question.named("warming"),
    )
