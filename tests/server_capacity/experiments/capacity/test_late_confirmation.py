"""A wave that confirms, and whose client had a hiccup."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.words.units import NS
from server_capacity.experiments.capacity.confirmation import confirm
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.measurements.question import Question
from server_capacity.search.answer import Answer
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.waves import open_plan, wave

RATE, SECONDS = 80, 2


@pytest.mark.parametrize(
    ("metric", "answer_s", "late_s", "judged", "spoilt"),
    [
        ("response_time", 0.020, 0.040, "holds", ""),
        ("response_time", 0.080, 0.060, "cannot_tell", "schedule lag"),
        ("latency", 0.020, 0.040, "cannot_tell", "schedule lag"),
    ],
)
def test_lateness_that_counts_as_the_endpoints_spoils_no_wave_that_keeps_every_limit(
    metric: str, answer_s: float, late_s: float, judged: str, spoilt: str
) -> None:
    slo = Slo.parse(f"{metric}.p99<100ms")
    due = np.arange(SECONDS * RATE) * NS // RATE
    late = np.where(np.arange(len(due)) % 40 == 20, late_s, 0.0)
    sent = due + np.rint(late * NS).astype(int)
    hiccup = wave((answer_s + late).reshape(SECONDS, RATE), slos=(slo,), sent=sent)
    waves: Any = SimpleNamespace(
        confirm=lambda _: hiccup, folder=open_plan().output_dir, server=SimpleNamespace(least_s=0), say=str
    )
    question = Question(open_plan(slos=(slo,)), limits_of((slo,), 0.95), Settings(), 2)

    confirmed = confirm(question, waves, Answer("at_least", at_least=RATE), SearchEvidence(workers=1))

    assert confirmed is not None
    assert (confirmed.judgement, confirmed.spoilt[:12]) == (judged, spoilt)
