"""The timeline of a wave is the same in any parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.plan.slo import RequestLimit
from inference_benchmarker.records.record import OUTCOMES, RequestRecord
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.words.units import NS
from tests.parts import parted
from tests.waves import MS, closed_plan, observe, open_plan, staged

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

GOOD = (RequestLimit.parse("latency<=900ms"),)
PLANS = (open_plan("10", "3"), closed_plan(2, "3"), open_plan("10", "3", goodput=GOOD), staged("a=5:2s,10:2s"))


@st.composite
def requests(draw: st.DrawFn) -> list[RequestRecord]:
    """Requests of a warm-up and a wave, of which some are attempts, some streams, and some out of order."""
    rows = []
    for index in range(-3, draw(st.integers(0, 25))):
        attempts = draw(st.integers(1, 2))
        for attempt in range(attempts):
            due = index * 150 * MS + attempt * NS
            late, took = draw(st.integers(0, 1500)), draw(st.sampled_from((0, 1, 20, 999, 3000)))
            sent = due + late * MS
            row = RequestRecord(index, 0, due, sent, sent + took * MS, draw(st.sampled_from(OUTCOMES)), attempt=attempt)
            if draw(st.booleans()):
                more: dict[str, Any] = {"first_token": sent + took * MS // 2, "last_token": row.done, "chunks": 3}
                row = row._replace(**more, tokens_out=draw(st.sampled_from((None, 2, 7))))
            rows.append(row)
    return rows


@settings(max_examples=25)
@given(st.sampled_from(PLANS), requests(), st.integers(1, 15))
def test_it_is_the_same_to_the_byte(plan: WavePlan, rows: list[RequestRecord], size: int) -> None:
    facts = observe(plan, rows)
    assert timeline(parted(facts, size)) == timeline(facts)


@pytest.mark.parametrize("took_ns", [1 << 40, 1 << 45, -1])
def test_no_time_is_too_long_for_it(took_ns: int) -> None:
    """Half of the requests take longer than a number has place for beside the second; one file has an end too early."""
    rows = [RequestRecord(i, 0, i * MS, i * MS, 9 * NS if i % 2 else i * MS + took_ns) for i in range(40)]
    facts = observe(closed_plan(2, "10"), rows)
    lines = timeline(facts).splitlines()
    assert timeline(parted(facts, 7)).splitlines() == lines
    reported = {line.split(",")[7] for line in lines[1:] if line.split(",")[7]}
    assert f"{took_ns / NS:.6f}" in reported
