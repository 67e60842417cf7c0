"""The formulas of a frontier, against arithmetic on a few rows and against the report of the same wave."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.words.units import NS
from tests.waves import MS, closed_plan, observe, open_plan, streamed
from visualization.comparison.intervals import interval
from visualization.pareto.measuring import cached_reports, estimates_of

ROWS = (  # time to the first piece and gaps in ms, output tokens, input tokens, cached tokens
    (100, (10, 10, 10), 4, 50, 0.0),
    (200, (20, 20), 5, 60, 30.0),
    (50, (40,), 2, 70, None),
)


def few() -> list[RequestRecord]:
    return [
        streamed(place, first, gaps, tokens_out=out, tokens_in=given)._replace(
            metrics=None if cached is None else {"cached_tokens": cached}
        )
        for place, (first, gaps, out, given, cached) in enumerate(ROWS)
    ]


def values(records: list[RequestRecord], seconds: str = "1") -> dict[str, float]:
    facts = observe(open_plan("10", seconds), records)
    return {name: each.value for name, each in estimates_of(facts, summarise(facts)).items()}


def test_each_value_is_what_arithmetic_on_the_rows_gives() -> None:
    found = values(few())
    generating = sorted([30 / 3, 40 / 4, 40 / 1])  # ms for each token after the first
    latencies = sorted([130 / 4, 240 / 5, 90 / 2])  # ms for each token
    assert found["tpot.p50"] == pytest.approx(generating[1] / 1e3)  # rank ceil(0.5 * 3)
    assert found["tpot.p90"] == pytest.approx(generating[2] / 1e3)
    assert found["latency_per_token.p90"] == pytest.approx(latencies[2] / 1e3)
    assert found["gap"] == pytest.approx(fmean([10, 10, 10, 20, 20, 40]) / 1e3)


def test_the_p90_of_a_ratio_is_not_the_ratio_of_p90s() -> None:
    first, _, third = few()
    of_each = 1 / values([first, third])["latency_per_token.p90"]
    assert of_each == pytest.approx(2 / 0.09)
    assert of_each != pytest.approx(4 / 0.13)  # p90 of the tokens over p90 of the latency


def test_tokens_are_those_of_the_completed_requests() -> None:
    records = [streamed(place, 20, (10,), tokens_out=7, tokens_in=11) for place in range(100)]
    facts = observe(open_plan("10", "10"), records)
    summary = summarise(facts)
    found = {name: each.value for name, each in estimates_of(facts, summary).items()}
    assert summary.tokens is not None
    assert found["output"] == pytest.approx(summary.tokens.tokens_out_per_s) == pytest.approx(70)
    assert found["input"] == pytest.approx(summary.tokens.tokens_in_per_s) == pytest.approx(110)
    assert found["total"] == pytest.approx(180)
    assert "cached" not in found


def test_cached_tokens_are_a_part_of_the_input_where_the_server_reported_them() -> None:
    found = values(few())
    assert found["cached"] + found["uncached"] == pytest.approx(found["input"])
    assert found["cached"] / found["input"] == pytest.approx(30 / 180)
    facts = observe(open_plan("10", "1"), few())
    assert cached_reports(facts) == (2, 3)


@pytest.mark.parametrize("cached", [-1.0, 51.0])
def test_impossible_cached_tokens_are_none(cached: float) -> None:
    records = [streamed(0, 10, (10,), tokens_out=2, tokens_in=50)._replace(metrics={"cached_tokens": cached})]
    assert "cached" not in values(records)


def test_failed_requests_and_single_pieces_have_no_speed() -> None:
    failed = few()[2]._replace(outcome="failed", error="E")
    one_piece = streamed(1, 30, (), tokens_out=1, tokens_in=10)
    found = values([few()[0], one_piece, failed])
    assert found["tpot.p90"] == pytest.approx(0.010)
    assert found["latency_per_token.p90"] == pytest.approx(0.0325)  # of the two that succeeded


def test_a_wave_without_streams_has_no_speed() -> None:
    records = [RequestRecord(place, 0, place * 100 * MS, place * 100 * MS, place * 100 * MS + MS) for place in range(9)]
    assert values(records) == {}


def test_the_values_are_those_of_the_report() -> None:
    draw = np.random.default_rng(3)
    records = []
    for place in range(400):
        gaps = tuple(int(gap) for gap in draw.integers(5, 60, int(draw.integers(1, 9))))
        tokens = len(gaps) + 1 + int(draw.integers(0, 3))
        records.append(streamed(place, int(draw.integers(10, 90)), gaps, tokens_out=tokens, tokens_in=30))
    facts = observe(open_plan("10", "40"), records)
    summary, found = summarise(facts), estimates_of(facts, summarise(facts))
    assert summary.tpot is not None
    assert summary.itl is not None
    for percent in (50, 90):
        assert found[f"tpot.p{percent}"].value == summary.tpot.percentile(percent)
    assert found["gap"].value == pytest.approx(summary.itl.mean)
    low, high = interval(found["tpot.p50"]) or (0, 0)
    assert low < found["tpot.p50"].value < high


def test_in_the_closed_loop_tokens_are_spread_over_the_time_in_flight() -> None:
    """Four requests at a time that begin and end together: each fourth of 8 tokens in 3 s, 32 / 3 tokens a second."""
    begins = [-1, 2, 5, 8]  # s; the first four are the warm-up's, the last four end after the wave
    records = [
        RequestRecord(4 * turn + one - 4, 0, begin * NS, begin * NS, (begin + 3) * NS)._replace(
            tokens_out=8, tokens_in=2
        )
        for turn, begin in enumerate(begins)
        for one in range(4)
    ]
    facts = observe(closed_plan(4, "10"), records)
    found = estimates_of(facts, summarise(facts))
    assert found["output"].value == pytest.approx(32 / 3)
    assert found["input"].value == pytest.approx(8 / 3)
    assert found["output"].ends(1) == pytest.approx((32 / 3, 32 / 3)), "no second differs from another"


def test_a_request_that_is_partly_in_the_wave_counts_partly() -> None:
    spans = [(0.5, 2.5, 10), (1.25, 1.75, 6), (9, 14, 100)]
    records = [
        RequestRecord(place, 0, 0, int(begin * NS), int(end * NS))._replace(tokens_out=tokens)
        for place, (begin, end, tokens) in enumerate(spans)
    ]
    facts = observe(closed_plan(3, "10"), records)
    inside = 10 + 6 + 100 / 5
    assert estimates_of(facts, summarise(facts))["output"].value == pytest.approx(inside / 10)


def test_in_the_closed_loop_a_request_belongs_to_the_second_it_was_sent_in() -> None:
    records = [streamed(place, 20, (10,), tokens_out=2)._replace(due=0) for place in range(300)]
    facts = observe(replace(closed_plan(1, "30")), records)
    found = estimates_of(facts, summarise(facts))
    assert interval(found["tpot.p50"]) is not None, "30 seconds have some"
    assert facts.window.duration_ns > 29 * NS
