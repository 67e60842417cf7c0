"""Stages, and stretches of equal length, are the same in any parts of a wave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.facts.instances import Followed
from inference_benchmarker.facts.stages import spans_of, stages_of
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.record import OUTCOMES, RequestRecord
from inference_benchmarker.verdict.missed_time import missed_time
from inference_benchmarker.words.units import NS
from tests.parts import parted
from tests.waves import MS, closed_plan, observe, on_time, open_plan, staged

STAGES = staged("a=5:2s,b=10:1s,0:1s,c=5..15:2s")


@st.composite
def attempts(draw: st.DrawFn) -> list[RequestRecord]:
    """The arrivals of the stages, and some before, each with an attempt or two that may last for seconds."""
    early = [RequestRecord(-1 - number, 0, -100 * MS, -100 * MS, 0) for number in range(3)]
    rows = []
    for record in (*early, *on_time(STAGES)):
        attempt = 0
        while attempt == 0 or (attempt < 2 and draw(st.integers(0, 5)) == 0):
            due = record.due + attempt * 5 * NS
            sent = due + draw(st.sampled_from((0, 300))) * MS
            took, outcome = draw(st.sampled_from((0, 20, 4000))) * MS, draw(st.sampled_from(OUTCOMES))
            rows.append(record._replace(due=due, sent=sent, done=sent + took, outcome=outcome, attempt=attempt))
            attempt += 1
    return rows


@settings(max_examples=15)
@given(attempts(), st.integers(1, 40), st.sampled_from((None, 2500 * MS)))
def test_a_stage_has_its_requests_and_what_was_in_flight(
    rows: list[RequestRecord], size: int, stopped_at: int | None
) -> None:
    facts = observe(STAGES, rows, stopped_at=stopped_at)
    before: list[RequestRecord] = [row for row in rows if row.index < 0]
    found = list(stages_of(parted(facts, size)))
    assert [stage.name for stage in found] == ["a", "b", "3", "c"][: 4 if stopped_at is None else 2]
    for whole, stage in zip(stages_of(facts), found, strict=True):
        assert list(stage.facts.records) == list(whole.facts.records)
        assert replace(stage.facts, records=whole.facts.records, warmup=whole.facts.warmup) == whole.facts
        flying = [r for r in before if r.done >= stage.start_ns or r.outcome == "abandoned"]
        for each in (stage, whole):
            sent = [int(sent) for part in each.facts.warmup.parts("sent") for sent in part.int("sent")]
            assert sorted(sent) == sorted(r.sent - stage.start_ns for r in flying)
        before += [r._replace(sent=r.sent + stage.start_ns, done=r.done + stage.start_ns) for r in whole.facts.records]
        end = stage.end_ns
        at_end = sum(r.sent < end and (r.done >= end or r.outcome == "abandoned") for r in before)
        assert stage.in_flight_end == whole.in_flight_end == at_end


@settings(max_examples=30)
@given(st.booleans(), st.lists(st.tuples(st.integers(0, 60), st.integers(1, 2)), max_size=30), st.integers(1, 40))
def test_a_stretch_has_the_arrivals_due_in_it(
    is_open: bool,
    drawn: list[tuple[int, int]],
    size: int,
) -> None:
    """In the closed loop they come in any order."""
    arrivals = sorted(drawn) if is_open else drawn
    rows = [
        RequestRecord(index, 0, due * 100 * MS + attempt * NS, due * 100 * MS + attempt * NS, 7 * NS, attempt=attempt)
        for index, (due, number) in enumerate(arrivals)
        for attempt in range(number)
    ]
    facts = observe(open_plan("5", "6") if is_open else closed_plan(3, "6"), rows)
    spans, wholes = list(spans_of(parted(facts, size), NS)), list(spans_of(facts, NS))
    assert [start for start, _, _ in spans] == list(range(0, 6 * NS, NS))
    for (start, end, part), (_, _, whole) in zip(spans, wholes, strict=True):
        mine = [number for due, number in arrivals if start <= due * 100 * MS < end]
        assert len(part.records) == sum(mine)
        assert part.ledger.repeated == sum(mine) - len(mine)
        assert sorted(part.records) == sorted(whole.records)
        assert replace(part, records=whole.records, warmup=whole.warmup) == whole


@pytest.mark.parametrize("plan", [open_plan("10", "10"), closed_plan(2, "10")])
def test_the_missed_time_is_the_same(plan: Any) -> None:
    random = np.random.default_rng(1)
    rows = [r._replace(done=r.sent + int(random.exponential(0.03) * NS)) for r in on_time(open_plan("10", "10"))]
    facts = observe(replace(plan, slos=(Slo.parse("latency.p99<80ms"),)), rows)
    facts = replace(facts, instances=(Followed("e", "v"),))
    assert missed_time(parted(facts, 7)) == missed_time(facts)
