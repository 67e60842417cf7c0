"""Answers whose lengths differ where all may be as long."""

from __future__ import annotations

from decimal import Decimal

import pytest

from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.answer_lengths import length_findings
from inference_benchmarker.words.units import NS
from tests.waves import observe


@pytest.mark.parametrize(
    ("lengths", "settings", "said"),
    [
        ([20] * 40, {"TURNS": "3"}, None),
        ([20] * 37 + [1] * 3, {"TURNS": "3"}, None),  # fewer than a tenth
        ([100] * 20 + [91] * 20, {"TURNS": "3"}, None),
        ([100] * 20 + [89] * 20, {"TURNS": "3"}, "answers had from 89 (p10) to 100 (p90) output tokens"),
        ([100] * 20 + [5] * 20, {}, None),  # a file of the user's own, whose answers may be of any length
        ([100] * 9 + [5] * 9, {"TURNS": "3"}, None),
        ([None] * 40, {"TURNS": "3"}, None),
    ],
)
def test_a_tenth_that_is_much_shorter_is_reported(
    lengths: list[int | None], settings: dict[str, str], said: str | None
) -> None:
    plan = WavePlan(OpenLoop(Decimal(10)), Bounds(Decimal(10)), factory_settings=settings)
    records = [
        RequestRecord(
            place, 0, place * NS // 10, place * NS // 10, place * NS // 10 + NS, tokens_in=9, tokens_out=tokens
        )
        for place, tokens in enumerate(lengths)
    ]
    facts = observe(plan, records)
    assert [each.measured for each in length_findings(facts, summarise(facts))] == ([] if said is None else [said])
