"""What a wave measured by stage, slice and limit, held against counting request by request."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.counting import count_stages, shown_metric
from server_capacity.search.limits import Limit, limits_of
from tests.parts import in_memory, in_parts
from tests.waves import MS, observe, on_time, open_plan, staged

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord

LIMITS = limits_of([Slo.parse(text) for text in ("p99<100ms", "latency.p95<=80ms", "goodput>=0.9")], 0.95)


def wave_of(seed: int = 1) -> WaveFacts:
    """Three stages whose requests took all kinds of times and ended in all ways, some later than their stage."""
    rng = np.random.default_rng(seed)
    plan = replace(staged("20:2s,0:1s,40:2.5s"), goodput=(RequestLimit.parse("latency<60ms"),))
    records = []
    for record in on_time(plan):
        sent = record.due + int(rng.exponential(2 * MS))
        done = sent + (80 * MS if rng.random() < 0.1 else int(rng.exponential(60 * MS)))
        outcome = rng.choice(["ok", "failed", "abandoned"], p=[0.8, 0.1, 0.1])
        records.append(record._replace(sent=sent, done=done, outcome=str(outcome)))
    return observe(plan, records)


def over(record: RequestRecord, limit: Limit) -> tuple[int, int]:
    """Whether a request counts for a limit, and whether it is over it."""
    if limit.metric == "success":
        return 1, int(record.outcome != "ok")
    if limit.metric == "goodput":
        return 1, int(record.outcome != "ok" or record.done - record.sent >= 60 * MS)
    assert limit.bound_s is not None
    begin = record.due if limit.metric == "response_time" else record.sent
    seconds = (record.done - begin) / NS
    beyond = seconds >= limit.bound_s if limit.strict else seconds > limit.bound_s
    counts = record.outcome == "ok" or (record.outcome == "abandoned" and seconds >= limit.bound_s)
    return int(counts), int(counts and (beyond or record.outcome == "abandoned"))


@pytest.mark.parametrize("seed", range(3))
def test_each_request_counts_in_the_slice_in_which_it_was_due(seed: int) -> None:
    wave = wave_of(seed)
    records = list(wave.records)

    for stage in count_stages(wave, LIMITS):
        for piece in stage.stretch.slices:
            mine = [each for each in records if piece.start_s * NS <= each.due < piece.end_s * NS]
            assert piece.sent == len(mine)
            assert piece.answered == sum(each.outcome != "abandoned" for each in mine)
            for limit, count in zip(LIMITS, piece.counts, strict=True):
                pairs = [over(each, limit) for each in mine]
                assert tuple(count) == (sum(of for of, _ in pairs), sum(beyond for _, beyond in pairs))


def test_stages_become_stretches_that_meet() -> None:
    stages = [stage.stretch for stage in count_stages(wave_of(), LIMITS)]

    assert [(stage.number, stage.rate, stage.before) for stage in stages] == [(0, 20, 0), (1, 0, 20), (2, 40, 0)]
    assert [stage.start_s for stage in stages] == [0, 2, 3]
    assert [stage.end_s for stage in stages] == [2, 3, 5.5]
    for stage in stages:
        assert [piece.start_s for piece in stage.slices] == [stage.start_s, *(p.end_s for p in stage.slices[:-1])]
        assert stage.slices[-1].end_s == stage.end_s


def test_requests_in_flight_at_a_stretchs_end_and_failures_are_counted() -> None:
    wave = wave_of()
    records = list(wave.records)

    for stage in count_stages(wave, LIMITS):
        end = stage.stretch.end_s * NS
        flying = [each for each in records if each.sent < end and (each.done >= end or each.outcome == "abandoned")]
        assert stage.stretch.in_flight == len(flying)
        mine = [each for each in records if stage.stretch.start_s * NS <= each.due < end]
        assert stage.failed == sum(each.outcome == "failed" for each in mine)
        answered = [each for each in records if each.outcome != "abandoned"]
        assert stage.completed == sum(stage.stretch.start_s * NS <= each.done < end for each in answered)


def test_times_are_of_the_first_metric_that_is_limited() -> None:
    wave = wave_of()
    records = [each for each in wave.records if each.outcome == "ok" and each.due < 2 * NS]
    latencies = sorted((each.done - each.sent) / NS for each in records)
    limits = limits_of([Slo.parse("success>=0.99"), Slo.parse("latency.p95<80ms")], 0.95)

    times = count_stages(wave, limits)[0].times

    assert shown_metric(limits) == "latency"
    assert times is not None
    assert times.values.tolist() == latencies


def test_a_wave_in_parts_counts_the_same() -> None:
    wave = wave_of()
    parts = replace(wave, records=in_parts(in_memory(wave.records)))

    assert [stage.stretch for stage in count_stages(parts, LIMITS)] == [
        stage.stretch for stage in count_stages(wave, LIMITS)
    ]


def test_an_ordinary_wave_is_one_stretch() -> None:
    plan = open_plan("10", "3")

    (stage,) = count_stages(observe(plan, on_time(plan)), LIMITS)

    assert (stage.stretch.rate, stage.stretch.end_s, sum(each.sent for each in stage.stretch.slices)) == (10, 3, 30)


def test_gaps_between_tokens_count_one_by_one() -> None:
    plan = open_plan("1", "2")
    gaps = ((10_000, 60_000, 20_000), (70_000, 70_000))
    records = []
    for record, mine in zip(on_time(plan), gaps, strict=True):
        tokens = [record.sent + 1, *(record.sent + 1 + 1000 * gap for gap in accumulate(mine))]
        stream: Any = {"first_token": tokens[0], "last_token": tokens[-1], "chunks": len(tokens), "gaps": mine}
        records.append(record._replace(done=tokens[-1] + 1, **stream))
    limits = limits_of([Slo.parse("itl.p99<50ms"), Slo.parse("ttft.p90<1s")], 0.95)

    (stage,) = count_stages(observe(plan, records), limits)

    assert [tuple(piece.counts[0]) for piece in stage.stretch.slices] == [(3, 1), (2, 2)]
    assert [tuple(piece.counts[1]) for piece in stage.stretch.slices] == [(1, 0), (1, 0)]


def test_the_times_spent_are_those_of_answers_whatever_is_limited() -> None:
    """By the times to first tokens, answers seemed so fast that what they kept in flight was taken for a backlog."""
    plan = open_plan("10", "3")
    limits = limits_of([Slo.parse("ttft.p90<1s")], 0.95)

    (stage,) = count_stages(observe(plan, on_time(plan)), limits)

    assert stage.stretch.mean_s == pytest.approx(sum(each.done - each.sent for each in on_time(plan)) / NS / 30)
