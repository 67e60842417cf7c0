"""The twin of what was measured: its traces, from the records of the waves, and its part of capacity.json."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.words.units import NS
from server_capacity.models.twin.result_section import block, refused
from server_capacity.models.twin.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.confirmed import Confirmed
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.results.types.twin import Twin

_COLUMNS = ("index", "attempt", "sent", "done", "outcome")


def twin_of(question: Question, explorations: Sequence[Wave], confirmed: Sequence[Confirmed]) -> Twin:
    """The twin fitted on the adaptive waves and judged on the ordinary ones; why there is none, where there is none."""
    if question.plan.retries.retries:
        return refused("clients retry, and so send more requests than arrive")
    if question.sessions is not None:
        return refused("the model needs single requests, and these are turns of sessions")
    if question.in_users:
        return refused("the model needs arrivals at a given rate")
    try:
        seen = [trace(wave) for wave in explorations]
        unseen = [(each.stage.stretch.rate, trace(each.wave)) for each in confirmed if not each.spoilt]
        return block(seen, unseen, question.limits, question.settings.arrivals)
    except Exception as error:  # a fault of ours keeps its traceback, and the search its answer
        traceback.print_exc()
        return refused(f"computing it failed ({type(error).__name__})")


def trace(wave: WaveFacts) -> Trace:
    """All requests of a wave in the order in which they were sent."""
    parts = list(wave.records.parts(*_COLUMNS))
    sent = np.concatenate([np.zeros(0, np.int64), *(part.int("sent") for part in parts)])
    done = np.concatenate([np.zeros(0, np.int64), *(part.int("done") for part in parts)])
    ok = np.concatenate([np.zeros(0, bool), *(part.outcome("ok") for part in parts)])
    left = np.concatenate([np.zeros(0, bool), *(part.outcome("abandoned") for part in parts)])
    latency = np.where(left, np.nan, (done - sent) / NS)
    order = np.argsort(sent, kind="stable")
    return Trace(sent[order] / NS, latency[order], ok[order])
