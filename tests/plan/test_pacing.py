"""Pacing: the stripes of any number of workers are one sequence, due exactly when the plan says."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import islice, pairwise
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.numbers import uniform
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.words.units import NS
from tests.goodness import anderson_darling_exponential, anderson_darling_limit
from tests.waves import merged

if TYPE_CHECKING:
    from inference_benchmarker.plan.load import Arrivals

ODD_RATES = ("7.3", "0.1", "0.5", "99.99", "0.000001", "1000000", "3", "1000", "333.333333333", "12345.678901")
LIMIT = 3000

rates = st.one_of(
    st.sampled_from(ODD_RATES),
    st.decimals(min_value="0.000001", max_value="1000000", places=6).map(str),
)
worker_counts = st.integers(1, 9)
arrival_kinds: st.SearchStrategy[Arrivals] = st.sampled_from(("constant", "poisson"))


def bucket(
    rate: str,
    *,
    seconds: str | None = None,
    number: int | None = None,
    workers: int = 1,
    kind: Arrivals = "constant",
    seed: int = 0,
    warmup: str = "0",
) -> TokenBucket:
    bounds = Bounds(None if seconds is None else Decimal(seconds), number)
    return TokenBucket(
        OpenLoop(Decimal(rate), kind), bounds, workers=workers, seed=seed, warmup_ns=int(Decimal(warmup) * NS)
    )


def closed(concurrency: int, *, seconds: str | None = None, number: int | None = None, workers: int = 1) -> TokenBucket:
    bounds = Bounds(None if seconds is None else Decimal(seconds), number)
    return TokenBucket(ClosedLoop(concurrency), bounds, workers=workers)


def seconds_for(rate: str, arrivals: int) -> str:
    return f"{max(Decimal('0.001'), Decimal(arrivals) / Decimal(rate)):.9f}"


class TestConstantRate:
    @pytest.mark.parametrize("rate", ODD_RATES)
    def test_due_times_are_absolute_and_exact(self, rate: str) -> None:
        for arrival in islice(bucket(rate, number=LIMIT).arrivals(0), LIMIT):
            assert arrival.due == arrival.index * NS * Fraction(1) / Fraction(rate) // 1

    def test_no_error_accumulates_over_a_billion_arrivals(self) -> None:
        far = bucket("7.3", number=10**9, workers=999_999_937)
        assert [arrival.due for arrival in far.arrivals(62)] == [62 * 10**10 // 73, 999_999_999 * 10**10 // 73]

    @given(rate=rates, workers=worker_counts, number=st.integers(1, LIMIT))
    @settings(max_examples=60)
    def test_a_number_of_requests_is_sent_exactly(self, rate: str, workers: int, number: int) -> None:
        arrivals = merged(bucket(rate, number=number, workers=workers))
        assert [arrival.index for arrival in arrivals] == list(range(number))

    @given(rate=rates, workers=worker_counts, number=st.integers(1, LIMIT))
    @settings(max_examples=60)
    def test_a_duration_holds_each_arrival_due_before_its_end_and_no_other(
        self, rate: str, workers: int, number: int
    ) -> None:
        made = bucket(rate, seconds=seconds_for(rate, number), workers=workers)
        arrivals = merged(made)
        assert [arrival.index for arrival in arrivals] == list(range(len(arrivals)))
        assert all(arrival.due < made.end_ns for arrival in arrivals)
        assert Fraction(len(arrivals)) * NS / Fraction(rate) // 1 >= made.end_ns

    @pytest.mark.parametrize(
        ("rate", "seconds", "expected"),
        [
            ("7.3", "10", 73),
            ("0.5", "10", 5),
            ("0.1", "10", 1),
            ("0.1", "10.001", 2),
            ("0.1", "0.001", 1),
            ("99.99", "100", 9999),
            ("3", "1", 3),
            ("1000000", "0.001", 1000),
            ("1000", "60", 60_000),
        ],
    )
    def test_rate_times_duration_has_no_fence_post(self, rate: str, seconds: str, expected: int) -> None:
        assert sum(bucket(rate, seconds=seconds, workers=3).count()) == expected

    @pytest.mark.parametrize(("seconds", "number", "expected"), [("2", 15, 15), ("1", 15, 10), ("1.5", 15, 15)])
    def test_of_two_bounds_the_one_that_comes_first_holds(self, seconds: str, number: int, expected: int) -> None:
        made = bucket("10", seconds=seconds, number=number, workers=2)
        assert len(merged(made)) == expected
        assert made.duration_ns() == expected * NS // 10


class TestStripes:
    @given(
        rate=st.sampled_from(("7.3", "99.99", "1000", "0.1")),
        kind=arrival_kinds,
        workers=worker_counts,
        number=st.integers(1, 600),
        warmup=st.integers(0, 200),
        seed=st.integers(0, 2**63 - 1),
    )
    @settings(max_examples=80)
    def test_their_union_is_the_whole_sequence_and_none_is_twice(
        self, *, rate: str, kind: Arrivals, workers: int, number: int, warmup: int, seed: int
    ) -> None:
        extent = {"number": number, "kind": kind, "seed": seed, "warmup": seconds_for(rate, warmup)}
        alone = list(bucket(rate, **extent).arrivals(0))  # type: ignore[arg-type]
        shared = bucket(rate, workers=workers, **extent)  # type: ignore[arg-type]
        assert merged(shared) == alone

    @given(kind=arrival_kinds, workers=worker_counts, number=st.integers(1, 400))
    @settings(max_examples=40)
    def test_a_worker_has_its_own_indices_in_order_of_due_time(self, kind: Arrivals, workers: int, number: int) -> None:
        made = bucket("50", number=number, kind=kind, workers=workers, warmup="1")
        for worker in range(workers):
            arrivals = list(made.arrivals(worker))
            assert all(arrival.index % workers == worker for arrival in arrivals)
            assert all(a.index + workers == b.index and a.due <= b.due for a, b in pairwise(arrivals))

    @given(kind=arrival_kinds, workers=worker_counts, number=st.integers(1, 500), tenths=st.integers(1, 100))
    @settings(max_examples=60)
    def test_count_is_what_enumeration_gives(self, kind: Arrivals, workers: int, number: int, tenths: int) -> None:
        made = bucket("31.7", seconds=str(Decimal(tenths) / 10), number=number, kind=kind, workers=workers, seed=4)
        stripes = [list(made.arrivals(worker)) for worker in range(workers)]
        assert made.count() == [len(stripe) for stripe in stripes]
        until = 1_234_567_891
        assert made.count(until) == [sum(arrival.due < until for arrival in stripe) for stripe in stripes]

    @given(kind=arrival_kinds, instants=st.lists(st.integers(-NS, 12 * NS), max_size=8).map(sorted))
    @settings(max_examples=40)
    def test_counts_at_several_instants_agree_with_each_count(self, kind: Arrivals, instants: list[int]) -> None:
        made = bucket("31.7", seconds="9.3", number=250, kind=kind, workers=3, seed=9)
        assert made.counts(instants) == [sum(made.count(instant)) for instant in instants]

    def test_a_stop_before_the_start_leaves_nothing(self) -> None:
        for kind in ("constant", "poisson"):
            made = bucket("10", seconds="5", kind=kind, workers=2, warmup="1")
            assert made.count(-NS) == [0, 0]
            assert made.duration_ns(-NS) == 0


class TestWarmUp:
    @given(rate=rates, kind=arrival_kinds, workers=worker_counts, number=st.integers(0, 300))
    @settings(max_examples=60)
    def test_indices_are_negative_contiguous_and_end_at_minus_one(
        self, rate: str, kind: Arrivals, workers: int, number: int
    ) -> None:
        made = bucket(rate, number=1, kind=kind, workers=workers, warmup=seconds_for(rate, number))
        warm = [arrival for arrival in merged(made) if arrival.index < 0]
        assert [arrival.index for arrival in warm] == list(range(-len(warm), 0))
        assert all(-made.warmup_ns <= arrival.due < 0 for arrival in warm)
        assert all(a.due <= b.due for a, b in pairwise(warm))

    @pytest.mark.parametrize(("warmup", "expected"), [("0", 0), ("0.05", 0), ("0.1", 1), ("1", 10), ("1.09", 10)])
    def test_it_has_as_many_arrivals_as_fit(self, warmup: str, expected: int) -> None:
        assert len(merged(bucket("10", number=1, workers=3, warmup=warmup))) == 1 + expected

    def test_it_runs_into_the_window_without_a_pause(self) -> None:
        dues = [arrival.due for arrival in bucket("1000", number=50, warmup="0.05").arrivals(0)]
        assert {b - a for a, b in pairwise(dues)} == {NS // 1000}

    def test_it_counts_in_neither_bound(self) -> None:
        assert bucket("10", seconds="3", number=20, workers=3, warmup="7").count() == [7, 7, 6]

    def test_a_poisson_warm_up_is_no_copy_of_the_window(self) -> None:
        arrivals = list(bucket("100", number=100, kind="poisson", warmup="1").arrivals(0))
        warm = [b.due - a.due for a, b in pairwise(arrival for arrival in arrivals if arrival.index < 0)]
        window = [b.due - a.due for a, b in pairwise(arrival for arrival in arrivals if arrival.index >= 0)]
        assert not set(warm) & set(window)


class TestPoisson:
    @staticmethod
    def dues(rate: str, number: int, seed: int, workers: int = 1) -> list[int]:
        return [
            arrival.due for arrival in merged(bucket(rate, number=number, kind="poisson", seed=seed, workers=workers))
        ]

    @pytest.mark.parametrize("workers", [2, 3, 4, 7])
    def test_due_times_are_the_same_for_any_number_of_workers(self, workers: int) -> None:
        assert self.dues("1000", 5000, 1, workers) == self.dues("1000", 5000, 1)

    def test_seeds_differ_and_repeat(self) -> None:
        seeds = (0, 1, 2, 255, 256, 2**32, 2**63 - 1)
        assert len({tuple(self.dues("10", 5, seed)) for seed in seeds}) == len(seeds)
        assert self.dues("10", 50, 7) == self.dues("10", 50, 7)

    @pytest.mark.parametrize("seed", [0, 1, 20_260])
    def test_gaps_are_exponential(self, seed: int) -> None:
        gaps = np.diff([0, *self.dues("1000", 20_000, seed)]) / NS
        assert anderson_darling_exponential(gaps) < anderson_darling_limit(len(gaps))
        assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.05)
        assert gaps.mean() == pytest.approx(0.001, rel=0.03)

    def test_neighbouring_gaps_are_independent(self) -> None:
        gaps = np.diff(self.dues("1000", 20_000, 3))
        assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.03

    def test_the_rate_scales_the_same_draw(self) -> None:
        slow, fast = self.dues("1", 100, 5), self.dues("1000", 100, 5)
        assert all(abs(a / 1000 - b) <= 1 for a, b in zip(slow, fast, strict=True))

    def test_a_number_far_beyond_the_time_bound_costs_nothing(self) -> None:
        made = bucket("100", seconds="2", number=10**9, kind="poisson")
        assert made.duration_ns() == 2 * NS
        assert len(merged(made)) == sum(made.count())


class TestDuration:
    @given(rate=rates, number=st.integers(1, 2000))
    @settings(max_examples=60)
    def test_n_arrivals_at_a_constant_rate_last_n_over_rate(self, rate: str, number: int) -> None:
        assert bucket(rate, number=number).duration_ns() == Fraction(number * NS) / Fraction(rate) // 1

    def test_n_poisson_arrivals_last_until_the_next_one_would_be_due(self) -> None:
        made = bucket("10", number=20, kind="poisson", seed=3)
        longer = list(bucket("10", number=21, kind="poisson", seed=3).arrivals(0))
        assert made.duration_ns() == longer[20].due

    @pytest.mark.parametrize(("until", "expected"), [(None, 10 * NS), (4 * NS, 4 * NS), (12 * NS, 10 * NS), (0, 0)])
    def test_an_early_stop_shortens_it(self, until: int | None, expected: int) -> None:
        assert bucket("10", seconds="10").duration_ns(until) == expected
        assert closed(4, seconds="10").duration_ns(until) == expected

    def test_a_closed_loop_of_n_requests_has_none(self) -> None:
        assert closed(4, number=100).duration_ns() is None
        assert closed(4, number=100).duration_ns(3 * NS) == 3 * NS


class TestClosedLoop:
    @given(concurrency=st.integers(1, 200), workers=worker_counts)
    def test_its_tokens_are_split_evenly_and_none_is_lost(self, concurrency: int, workers: int) -> None:
        made = closed(concurrency, number=1, workers=workers)
        shares = [made.stripe(worker).arrivals for worker in range(workers)]
        assert sum(shares) == concurrency
        assert max(shares) - min(shares) <= 1

    @given(number=st.integers(1, 100), workers=worker_counts)
    def test_a_number_of_requests_is_handed_out_exactly(self, number: int, workers: int) -> None:
        made = closed(workers, number=number, workers=workers)
        indices = []
        for worker in range(workers):
            stripe = made.stripe(worker)
            while (arrival := stripe.take(NS)) is not None:
                assert arrival == (arrival.index, NS)
                assert arrival.index % workers == worker
                indices.append(arrival.index)
            assert stripe.spent
        assert sorted(indices) == list(range(number))

    def test_a_token_is_due_when_it_returns_and_none_is_given_at_the_end(self) -> None:
        stripe = closed(2, seconds="1").stripe(0)
        assert stripe.take(0) == (0, 0)
        assert stripe.take(NS - 1) == (1, NS - 1)
        assert stripe.take(NS) is None
        assert stripe.end_ns == NS
        assert not stripe.spent

    def test_warm_up_takes_no_index_of_the_window(self) -> None:
        stripe = closed(4, seconds="1", number=4, workers=2).stripe(1)
        assert [stripe.take(-5), stripe.take(-3), stripe.take(0), stripe.take(1), stripe.take(2)] == [
            (-1, -5),
            (-3, -3),
            (1, 0),
            (3, 1),
            None,
        ]

    def test_a_stop_ends_it_at_once_and_never_prolongs_it(self) -> None:
        stripe = closed(2, seconds="1").stripe(0)
        stripe.stop(NS // 2)
        stripe.stop(2 * NS)
        assert stripe.take(NS // 2) is None
        assert stripe.take(NS // 2 - 1) is not None

    def test_a_stop_within_the_warm_up_ends_the_warm_up(self) -> None:
        stripe = closed(2, seconds="1").stripe(0)
        stripe.stop(-NS)
        assert stripe.take(-NS + 1) is None

    def test_the_two_loads_do_not_take_each_other_for_themselves(self) -> None:
        with pytest.raises(TypeError, match="stripe"):
            closed(1, number=1).arrivals(0)
        with pytest.raises(TypeError, match="arrivals"):
            bucket("1", number=1).stripe(0)


def test_a_bucket_of_a_plan_has_all_of_it() -> None:
    load = OpenLoop(Decimal("7.3"), "poisson")
    plan = WavePlan(load, Bounds(Decimal(3), 9), workers=2, seed=5, warmup_s=Decimal("0.5"))
    made = TokenBucket.of(plan)
    assert (made.load, made.workers, made.seed, made.warmup_ns) == (load, 2, 5, NS // 2)
    assert (made.end_ns, made.num_requests) == (3 * NS, 9)


class TestUniform:
    @given(seed=st.integers(0, 2**63 - 1), index=st.integers(-(10**9), 10**9))
    def test_it_lies_in_the_unit_interval_and_depends_on_nothing_else(self, seed: int, index: int) -> None:
        assert 0 <= uniform(seed, index) < 1
        assert uniform(seed, index) == uniform(seed, index)

    @pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
    def test_it_spreads_evenly_over_arrivals(self, seed: int) -> None:
        drawn = [uniform(seed, index) for index in range(-500, 20_000)]
        assert stats.kstest(drawn, "uniform").pvalue > 0.01
        assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.03

    @pytest.mark.parametrize("step", [2, 3, 7, 64])
    def test_it_spreads_evenly_over_each_stripe(self, step: int) -> None:
        assert stats.kstest([uniform(3, index) for index in range(1, 20_000, step)], "uniform").pvalue > 0.01

    def test_seeds_differ_even_beside_each_other(self) -> None:
        same = [uniform(1, index) for index in range(1000)]
        other = [uniform(2, index) for index in range(1000)]
        assert not set(same) & set(other)
        assert abs(np.corrcoef(same, other)[0, 1]) < 0.1
        assert fmean(same) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_when_a_wave_is_surely_over_its_last_arrival_has_been_due(arrivals: Arrivals, seed: int) -> None:
    bucket = TokenBucket(OpenLoop(Decimal(50), arrivals), Bounds(num_requests=500), seed=seed)
    over, planned = bucket.surely_over_ns(), bucket.duration_ns()
    assert over is not None
    assert planned is not None
    assert planned <= over <= 2 * planned + NS
