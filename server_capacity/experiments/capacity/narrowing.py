"""Waves between two rates of which one keeps a limit on a value of the user's own and one does not.

The search knows of such a limit only where a stretch surely misses it, so the two may lie far apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from server_capacity.experiments.capacity.confirmation import SHARE_OF_LOAD, SHORTEST_S, USUAL_S, judgements, wave_at
from server_capacity.experiments.measurements.client_limit import spoilt
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.user_limits import users_estimates

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.processes.interrupts import Interrupts
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.evidence import SearchEvidence
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.answer import Answer

MOST_WAVES = 4
NEAR = 1.1
"""Between rates of which one is less than so many times the other nothing is worth a wave."""


def narrowed(
    question: Question, waves: Waves, explored: SearchEvidence, answer: Callable[[], Answer], interrupts: Interrupts
) -> Answer:
    """The answer after some waves where a limit is violated, that holds; each joins the evidence, as stretches do."""
    found = answer()
    for _ in range(MOST_WAVES):
        rate = rate_between(question, explored, found)
        if rate is None or explored.interrupted or interrupts.count or not _sent(question, waves, explored, rate):
            break
        found = answer()
    return found


def rate_between(question: Question, explored: SearchEvidence, found: Answer) -> float | None:
    """The middle between the rate that was found and that end of its interval which is further away.

    None where another limit holds, or both ends are near.
    """
    mine = (each.estimate for each in users_estimates(question, explored) if each.limit.expression == found.limit)
    estimate = next((each for each in mine if each.rate and each.interval), None)
    if found.outcome != "found" or estimate is None or estimate.interval is None or not estimate.rate:
        return None
    low, high = max(
        (estimate.interval.low, estimate.rate),
        (estimate.rate, estimate.interval.high),
        key=lambda ends: ends[1] / ends[0],
    )
    return float(question.offerable((low * high) ** 0.5)) if high > NEAR * low else None


def _sent(question: Question, waves: Waves, explored: SearchEvidence, rate: float) -> bool:
    """Send a wave at a rate; False where it could not begin."""
    load_s = question.settings.time_s or explored.load_s
    seconds = max(SHORTEST_S, min(USUAL_S, SHARE_OF_LOAD * load_s / MOST_WAVES), waves.server.least_s)
    wave = wave_at(question, waves, explored, rate, seconds, failed="Not narrowed")
    if wave is None:
        return False
    (stage,) = count_stages(wave, question.limits, question.user_limits)
    stretch = replace(stage.stretch, purpose="narrow", void=spoilt(question, wave, partial(judgements, question)))
    explored.add(wave, [replace(stage, stretch=stretch)])
    explored.interrupted = wave.interrupted
    return True
