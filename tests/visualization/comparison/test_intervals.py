"""Intervals of one run: the formulas by hand, and how often they hold on simulated records."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from inference_benchmarker.plan.slo import MaxRegression
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.summary.statistics.student_t import student_t
from inference_benchmarker.words.units import NS
from tests.counted import counted
from tests.parts import in_memory, in_parts
from tests.waves import MEAN_S, drawn, wave
from visualization.comparison.comparison import compare
from visualization.comparison.estimates import LEAST_BLOCKS, Estimate, Percentile, Ratio
from visualization.comparison.intervals import Estimates, interval, ratio_error

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave

STATISTICS = ("mean", "p50", "p90", "p99")
SUMS = st.lists(st.integers(0, 1000), min_size=2, max_size=50).filter(any)
TOKENS: dict[str, Any] = {"first_token": np.zeros(2000, np.int64), "chunks": np.full(2000, 3)}


def estimated(run: Wave, metric: str, stat: str) -> Estimate | None:
    return Estimates(run, [(metric, stat)]).of(metric, stat)


@pytest.mark.parametrize("freedom", [1, 2.5, 19, 38, 600, 100_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.998, 0.9999])
def test_students_t(confidence: float, freedom: float) -> None:
    assert student_t(confidence, freedom) == pytest.approx(stats.t.ppf((1 + confidence) / 2, freedom), rel=1e-3)


class TestRatioError:
    def test_of_independent_blocks_it_is_that_of_a_mean(self) -> None:
        above, below = np.array([1.0, -1, 0, 1, -1, 0]) + 5, np.ones(6)
        assert ratio_error(above, below) == pytest.approx(np.std(above, ddof=1) / math.sqrt(6))

    def test_blocks_of_other_sizes_weigh_as_much_as_they_hold(self) -> None:
        residuals = np.array([2.0, -3, 1])
        below = np.array([10.0, 20, 30])
        expected = math.sqrt(float(residuals @ residuals) * 3 / 2) / 60
        assert ratio_error(below * 0.5 + residuals, below) == pytest.approx(expected)

    def test_blocks_that_resemble_their_neighbours_say_less(self) -> None:
        above = np.array([1.0, 1, 1, -1, -1, -1, 1, 1, 1, -1, -1, -1])
        correlation = 5 / 12  # eight neighbours alike, three apart
        alone = np.std(above, ddof=1) / math.sqrt(12)
        raised = alone * math.sqrt((1 + correlation) / (1 - correlation))
        assert ratio_error(above, np.ones(12)) == pytest.approx(raised)

    @given(SUMS)
    def test_what_does_not_vary_has_none(self, below: list[int]) -> None:
        sizes = np.array(below, np.float64)
        assert ratio_error(sizes * 0.25, sizes) == 0

    @given(SUMS, st.floats(0.001, 1000))
    def test_it_has_the_unit_of_what_is_counted(self, sums: list[int], unit: float) -> None:
        above = np.array(sums, np.float64)
        below = np.ones(len(sums))
        assert ratio_error(above * unit, below) == pytest.approx(ratio_error(above, below) * unit, abs=1e-9)


@given(
    st.lists(st.floats(0.001, 10), min_size=1, max_size=200),
    st.sampled_from([50, 90, 99, 99.9]),
    st.floats(0, 0.2),
    st.floats(0, 5),
    st.floats(0, 5),
)
def test_the_ends_of_a_percentile_enclose_it_and_lie_further_apart_the_surer_they_are(
    values: list[float], percent: float, error: float, t: float, more: float
) -> None:
    distribution = Distribution.of(values)
    assert distribution is not None
    percentile = Percentile(distribution, percent, error, LEAST_BLOCKS)
    low, high = percentile.ends(t)
    wider_low, wider_high = percentile.ends(t + more)
    assert wider_low <= low <= percentile.value <= high <= wider_high
    assert (low, high) == (percentile.value,) * 2 or t


class TestEstimates:
    def test_the_values_are_those_of_the_summary(self) -> None:
        run = wave(drawn(1), outcomes=["ok", "ok", "ok", "failed"] * 500, tokens_out=np.arange(2000) % 7, **TOKENS)
        summary = run.summary
        assert summary.latency is not None
        assert summary.tokens is not None
        expected = {
            ("latency", "p99.9"): summary.latency.percentile(99.9),
            ("response_time", "mean"): summary.measured("response_time", "mean"),
            ("default", "p50"): summary.measured("response_time", "p50"),
            ("ttft", "p90"): summary.measured("ttft", "p90"),
            ("success", "success"): 0.75,
            ("rate", "rate"): summary.rates.completed,
            ("tokens", "tokens"): summary.tokens.tokens_out_per_s,
        }
        estimates = Estimates(run, expected)
        found = {name: estimate.value for name in expected if (estimate := estimates.of(*name))}
        assert found == expected

    def test_what_was_not_measured_has_none(self) -> None:
        run = wave(drawn(1), concurrency=4)
        for name in (("response_time", "p50"), ("ttft", "p50"), ("tokens", "tokens")):
            assert estimated(run, *name) is None

    def test_a_block_is_the_second_a_request_was_due_in(self) -> None:
        seconds = np.where(np.arange(20) % 2, 0.1, 0.3)
        estimate = estimated(wave(np.repeat(seconds[:, None], 50, axis=1)), "latency", "mean")
        assert isinstance(estimate, Ratio)
        assert estimate.value == pytest.approx(0.2)
        assert estimate.error == pytest.approx(float(np.std(seconds, ddof=1)) / math.sqrt(20))
        assert estimate.blocks == 20

    def test_seconds_in_which_nothing_was_due_are_no_blocks(self) -> None:
        due = np.repeat(np.arange(0, 40, 2), 50) * NS
        latencies = np.full((40, 25), 0.1)
        run = wave(latencies, due=due, sent=due, done=due + NS // 10)
        estimate = estimated(run, "latency", "p50")
        assert estimate is not None
        assert (estimate.blocks, interval(estimate)) == (20, (0.1, 0.1))

    def test_in_the_closed_loop_it_is_the_second_it_was_sent_in(self) -> None:
        sent = np.repeat(np.arange(20), 50) * NS
        run = wave(np.full((20, 50), 0.1), concurrency=1, due=np.zeros(1000, np.int64), sent=sent, done=sent + NS // 10)
        estimate = estimated(run, "latency", "p50")
        assert estimate is not None
        assert estimate.blocks == 20

    def test_the_gaps_between_tokens_belong_to_their_request(self) -> None:
        seconds = np.where(np.arange(20) % 2, 1, 3)
        gaps = [[second * 1000] * (number % 3) for number, second in enumerate(np.repeat(seconds, 100))]
        estimate = estimated(wave(np.full((20, 100), 1.0), gaps=gaps, **TOKENS), "itl", "mean")
        assert isinstance(estimate, Ratio)
        assert estimate.blocks == 20
        assert estimate.value == pytest.approx(0.002, rel=0.01)
        assert estimate.error == pytest.approx(np.std(seconds, ddof=1) / 1000 / math.sqrt(20), rel=0.02)

    def test_an_even_load_answered_in_even_time_has_no_error(self) -> None:
        run = wave(np.full((20, 50), 0.1), tokens_out=np.full(1000, 5), chunks=np.full(1000, 5))
        for name in ("rate", "success", "tokens"):
            estimate = estimated(run, name, name)
            assert isinstance(estimate, Ratio)
            assert (estimate.error, estimate.blocks) == (0, 20)

    def test_a_fraction_of_a_second_at_the_end_is_part_of_the_last_block(self) -> None:
        due = np.arange(2050) * NS // 100
        run = wave(np.full((41, 50), 0.1), due=due, sent=due, done=due + NS // 10, tokens_out=np.full(2050, 3))
        run = replace(run, window=replace(run.window, planned_ns=due[-1] + NS // 100))
        for name in ("rate", "tokens"):
            estimate = estimated(run, name, name)
            assert isinstance(estimate, Ratio)
            assert estimate.error == pytest.approx(0, abs=1e-9)
            assert estimate.blocks == 20

    def test_failures_that_come_together_make_success_uncertain(self) -> None:
        together = ["failed"] * 100 + ["ok"] * 1900
        apart = (["failed"] + ["ok"] * 19) * 100
        errors = []
        for outcomes in (together, apart):
            estimate = estimated(wave(drawn(1), outcomes=outcomes), "success", "success")
            assert isinstance(estimate, Ratio)
            errors.append(estimate.error)
        assert errors == [pytest.approx(0.05), 0]

    def test_a_share_ends_at_1(self) -> None:
        estimate = estimated(wave(drawn(1), outcomes=["failed"] * 20 + ["ok"] * 1980), "success", "success")
        assert estimate is not None
        assert list(estimate.ends(2)) == [pytest.approx(0.97), 1]


EVERY = [
    *((name, name) for name in ("rate", "success", "tokens")),
    *((name, stat) for name in ("default", "latency", "response_time", "ttft", "itl", "lag") for stat in STATISTICS),
]


@st.composite
def any_wave(draw: st.DrawFn) -> Wave:
    """Of some seconds of 7 requests: streams or none, answered or not, in the open loop or the closed."""
    seconds = draw(st.integers(1, 6))
    size = 7 * seconds
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    latencies = np.round(random.lognormal(-1, 1, (seconds, 7)), draw(st.integers(1, 9)))
    due = np.arange(size) * NS // 7
    sent = due + np.round(random.exponential(3e8, size)).astype(np.int64)
    done = sent + np.round(latencies.ravel() * NS).astype(np.int64)
    more: dict[str, Any] = {"sent": sent, "done": done}
    if draw(st.booleans()):
        chunks = random.integers(1, 5, size)
        has_none = np.arange(size) % draw(st.integers(2, 50)) == 0
        first, last = sent + (done - sent) // 3, sent + (done - sent) * 2 // 3
        gaps = [
            None if missing else [1000 * count] * (count - 1) for count, missing in zip(chunks, has_none, strict=True)
        ]
        whole = zip(
            ("first_token", "last_token", "chunks", "tokens_out"), (first, last, chunks, 2 * chunks), strict=True
        )
        more |= {name: pa.array(values, pa.int64(), mask=has_none) for name, values in whole} | {"gaps": gaps}
    outcomes = random.choice(["ok", "failed", "abandoned"], size, p=[0.8, 0.1, 0.1]).tolist()
    return wave(latencies, outcomes=outcomes, concurrency=draw(st.sampled_from([None, 4])), **more)


@settings(max_examples=30)
@given(any_wave(), st.integers(1, 50))
def test_intervals_do_not_depend_on_the_parts(run: Wave, rows: int) -> None:
    records: Any = in_parts(in_memory(run.records), rows)
    whole, parts = (Estimates(each, EVERY) for each in (run, replace(run, records=records)))
    for name in EVERY:
        expected, found = whole.of(*name), parts.of(*name)
        assert type(found) is type(expected)
        if expected is not None and found is not None:
            assert found.error == pytest.approx(expected.error, rel=1e-9, abs=1e-12)
            assert (found.blocks, found.is_lower_bound) == (expected.blocks, expected.is_lower_bound)


class TestInterval:
    @pytest.mark.parametrize(("seconds", "known"), [(LEAST_BLOCKS - 1, False), (LEAST_BLOCKS, True)])
    def test_there_is_none_from_fewer_than_20_seconds(self, seconds: int, *, known: bool) -> None:
        estimate = estimated(wave(drawn(1, seconds=seconds)), "latency", "p50")
        assert estimate is not None
        assert (interval(estimate) is not None) is known

    def test_there_is_none_where_no_record_lies_beyond(self) -> None:
        run = wave(drawn(1))
        found = {stat: estimate for stat in ("p99", "p99.9") if (estimate := estimated(run, "latency", stat))}
        assert interval(found["p99"]) is not None
        assert interval(found["p99.9"]) is None

    def test_an_abandoned_request_bounds_nothing_from_above(self) -> None:
        outcomes = ["ok"] * 2000
        outcomes[::100] = ["abandoned"] * 20
        latencies = drawn(1)
        latencies.ravel()[::100] = 60
        run = wave(latencies, outcomes=outcomes)
        found = {stat: estimate for stat in ("mean", "p50", "p99.5") if (estimate := estimated(run, "latency", stat))}
        assert [found[stat].is_lower_bound for stat in found] == [True, False, True]
        assert [interval(found[stat]) is None for stat in found] == [True, False, True]


def covered(stat: str, true: float, runs: int) -> float:
    """The share of simulated runs whose 95% interval holds the true value."""
    hits = 0
    for seed in range(runs):
        estimate = estimated(wave(drawn(seed, rate=50)), "latency", stat)
        assert estimate is not None
        low, high = interval(estimate) or (0, math.inf)
        hits += low <= true <= high
    return hits / runs


@pytest.mark.parametrize("stat", ["mean", "p50", "p90"])
def test_95_of_100_intervals_hold_the_true_value(stat: str) -> None:
    sigma = math.sqrt(math.log1p(0.3**2))
    shares = {"mean": sigma**2 / 2, "p50": 0, "p90": sigma * stats.norm.ppf(0.9)}
    true = MEAN_S * math.exp(shares[stat] - sigma**2 / 2)
    assert 0.92 <= covered(stat, true, runs=300) <= 0.99


def test_a_load_that_drifts_is_seen() -> None:
    """Seconds that each resemble the one before (correlation 0.5): blocks taken for independent hold 3 times in 4."""
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        levels = [random.normal()]
        while len(levels) < 60:
            levels.append(0.5 * levels[-1] + math.sqrt(0.75) * random.normal())
        estimate = estimated(wave(np.repeat(np.array(levels)[:, None] * 0.01 + 0.1, 10, axis=1)), "latency", "mean")
        assert estimate is not None
        low, high = interval(estimate) or (math.nan, math.nan)
        hits += low <= 0.1 <= high
    assert hits >= 180


@pytest.mark.parametrize(
    ("metric", "stat"),
    [("rate", "rate"), ("success", "success"), ("latency", "mean"), ("latency", "p50"), ("response_time", "p90")],
)
def test_of_requests_that_were_counted_they_are_about_those_of_the_records(metric: str, stat: str) -> None:
    """A request counts in the second in which it was over, and a percentile is a bucket's."""
    outcomes = ["ok"] * 2000
    outcomes[::37] = ["failed"] * len(outcomes[::37])
    run = wave(drawn(1), outcomes=outcomes)
    counts = replace(run, records=run.records.between(0, 0), counts=counted(run.records))
    exact, found = (estimated(each, metric, stat) for each in (run, counts))
    assert exact is not None
    assert found is not None
    assert found.value == pytest.approx(exact.value, rel=0.01)
    ends, about = interval(exact), interval(found)
    assert ends is not None
    assert about is not None
    width = ends[1] - ends[0]
    assert about == pytest.approx(ends, abs=0.5 * width + 0.01 * ends[1])


def test_two_runs_whose_times_fall_into_neighbouring_buckets_may_be_the_same() -> None:
    """20 ns apart, and by the middles of their buckets 1.3%."""
    runs = [wave(np.full((40, 50), took_s)) for took_s in (0.019_922_93, 0.019_922_95)]
    base, new = (replace(run, records=run.records.between(0, 0), counts=counted(run.records)) for run in runs)
    compared = compare(base, new, [MaxRegression.parse("latency.p50=1%")])
    (row,) = (row for row in compared.rows if row.name == "latency.p50")
    assert row.change is not None
    assert row.change > 0.012
    assert not row.significant
    assert compared.outcome == "undecided"
