"""The schedule of stages: each arrival is due where the area under the rate reaches its number, for any workers."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.words.units import NS
from tests.waves import merged

if TYPE_CHECKING:
    from inference_benchmarker.plan.load import Arrivals

rates = st.one_of(
    st.sampled_from(("0", "7.3", "0.1", "333.333333", "2000")), st.decimals("0.000001", "500", places=6).map(str)
)
lengths = st.decimals("0.001", "3", places=3).map(str)
stages = (
    st.lists(st.builds(lambda a, b, s: Stage(Decimal(a), Decimal(b), Decimal(s)), rates, rates, lengths), min_size=1)
    .map(lambda found: found[:5])
    .filter(lambda found: any(stage.from_rps or stage.to_rps for stage in found))
)
worker_counts = st.integers(1, 5)
arrival_kinds: st.SearchStrategy[Arrivals] = st.sampled_from(("constant", "poisson"))


def load_of(text: str, arrivals: Arrivals = "constant") -> OpenLoop:
    return OpenLoop(arrivals=arrivals, stages=tuple(map(Stage.parse, text.split(","))))


def bucket(
    load: OpenLoop, *, workers: int = 1, seed: int = 0, number: int | None = None, warmup_s: str = "0"
) -> TokenBucket:
    bounds = Bounds(load.stages_s, number)
    return TokenBucket(load, bounds, workers=workers, seed=seed, warmup_ns=int(Decimal(warmup_s) * NS))


def exact_area(load: OpenLoop, at_ns: int) -> Fraction:
    """The area under the rate, by the trapezium rule, stage by stage."""
    area, start = Fraction(0), 0
    for stage in load.stages:
        length = stage.duration_ns
        elapsed = min(max(at_ns - start, 0), length)
        first, last = Fraction(stage.from_rps), Fraction(stage.to_rps)
        now = first + (last - first) * elapsed / length
        area += (first + now) / 2 * elapsed / NS
        start += length
    return area


class TestDueTimes:
    @given(made=stages)
    @settings(max_examples=60)
    def test_an_arrival_is_due_in_the_nanosecond_in_which_the_area_reaches_its_number(self, made: list[Stage]) -> None:
        load = OpenLoop(stages=tuple(made))
        for index, due in islice(bucket(load).arrivals(0), 150):
            assert exact_area(load, due) <= index < exact_area(load, due + 1) or exact_area(load, due) == index

    def test_a_stage_at_one_rate_is_the_constant_rate(self) -> None:
        rate = Decimal("333.333333")
        plain = TokenBucket(OpenLoop(rate), Bounds(Decimal(3)), workers=3)
        assert merged(bucket(load_of("333.333333:3s"), workers=3)) == merged(plain)

    def test_a_rate_cut_into_stages_stays_the_same_rate(self) -> None:
        whole, parts = load_of("7.3:10s"), load_of("7.3:3s,7.3..7.3:0.123s,7.3:6.877s")
        assert [a.due for a in merged(bucket(parts))] == [a.due for a in merged(bucket(whole))]

    def test_no_error_accumulates_in_ten_hours_at_10000_a_second(self) -> None:
        for text in ("9000..11000:10h", "11000..9000:10h", "10000:5h,10000:5h"):
            load = load_of(text)
            made = load.schedule
            for index in (1, 179_999_999, 359_999_999):
                due = made.due(index)
                assert exact_area(load, due) <= index < exact_area(load, due + 1), text

    def test_a_poisson_instant_is_off_by_less_than_a_microsecond_after_ten_hours(self) -> None:
        for text in ("9000..11000:10h", "11000..9000:10h", "10000:10h", "10000:4h,0:1h,12000:5h"):
            load = load_of(text)
            made = load.schedule
            numbers = [0.25, 179_999_999.75, 359_999_999.5]
            for number, instant in zip(numbers, made.instants(iter(numbers)), strict=False):
                error = abs(exact_area(load, int(instant)) - Fraction(number)) / 9000 * NS
                assert error < 1000, text

    def test_a_pause_has_no_arrivals_and_the_fraction_before_it_is_carried_over_it(self) -> None:
        dues = [arrival.due / NS for arrival in merged(bucket(load_of("1:2.5s,0:10s,1:2s")))]
        assert dues == [0.0, 1.0, 2.0, 13.0, 14.0]

    def test_an_arrival_whose_turn_comes_when_a_pause_begins_is_due_when_it_ends(self) -> None:
        dues = [arrival.due / NS for arrival in merged(bucket(load_of("0:1s,1:2s,0:3s,1:1s")))]
        assert dues == [1.0, 2.0, 6.0]

    def test_a_ramp_from_zero_and_down_to_zero(self) -> None:
        up = [arrival.due for arrival in merged(bucket(load_of("0..10:2s")))]
        down = [arrival.due for arrival in merged(bucket(load_of("10..0:2s")))]
        assert len(up) == len(down) == 10
        assert up[:2] == [0, int((2 * 2 / 10) ** 0.5 * NS)]
        assert up[1] - up[0] > up[9] - up[8]
        assert down[9] - down[8] > down[1] - down[0]


class TestWorkers:
    @given(made=stages, kind=arrival_kinds, workers=worker_counts, seed=st.integers(0, 2**63 - 1))
    @settings(max_examples=60)
    def test_the_arrivals_are_the_same_for_any_number_of_workers(
        self, made: list[Stage], kind: Arrivals, workers: int, seed: int
    ) -> None:
        load = OpenLoop(stages=tuple(made), arrivals=kind)
        alone = bucket(load, seed=seed, number=500)
        shared = bucket(load, seed=seed, number=500, workers=workers)
        assert merged(shared) == list(alone.arrivals(0))
        assert all(a.due <= b.due and a.index + 1 == b.index for a, b in pairwise(alone.arrivals(0)))

    @given(made=stages, kind=arrival_kinds, workers=worker_counts, instants=st.lists(st.integers(-NS, 16 * NS)))
    @settings(max_examples=60)
    def test_counts_are_those_of_enumeration(
        self, made: list[Stage], kind: Arrivals, workers: int, instants: list[int]
    ) -> None:
        load = OpenLoop(stages=tuple(made), arrivals=kind)
        found = bucket(load, workers=workers, number=700)
        dues = [arrival.due for arrival in merged(found)]
        assert sum(found.count()) == len(dues)
        assert found.counts(sorted(instants)) == [sum(due < at for due in dues) for at in sorted(instants)]
        most = found.most_arrivals()
        assert most is not None
        assert len(dues) <= most

    @example(made=[Stage(Decimal(0), Decimal(7), Decimal(1))], kind="poisson", warmup=1, seed=0)
    @example(made=[Stage(Decimal(333), Decimal(493), Decimal("2.68"))], kind="poisson", warmup=2_999_680, seed=1)
    @given(made=stages, kind=arrival_kinds, warmup=st.integers(0, 20 * NS), seed=st.integers(0, 1 << 32))
    @settings(max_examples=60)
    def test_the_warm_up_and_the_wave_have_at_most_so_many(
        self, made: list[Stage], kind: Arrivals, warmup: int, seed: int
    ) -> None:
        load, bounds = OpenLoop(stages=tuple(made), arrivals=kind), Bounds(None, 700)
        found = TokenBucket(load, bounds, seed=seed, warmup_ns=warmup)
        most = found.most_with_warmup()
        assert most is not None
        assert sum(1 for _ in found.arrivals(0)) <= most

    @pytest.mark.parametrize(
        ("load", "warmup", "most"),
        [
            (OpenLoop(Decimal(10)), 0, 20),
            (OpenLoop(Decimal(10)), NS, 30),
            (OpenLoop(Decimal(10), steered=True), 0, None),
            (ClosedLoop(4), 0, None),
        ],
    )
    def test_how_many_there_are_at_most_is_none_where_answers_or_people_decide(
        self, load: OpenLoop | ClosedLoop, warmup: int, most: int | None
    ) -> None:
        assert TokenBucket(load, Bounds(Decimal(2), None), warmup_ns=warmup).most_with_warmup() == most
        numbered = TokenBucket(load, Bounds(None, 20), warmup_ns=warmup).most_with_warmup()
        assert numbered == (20 if most is None else most)

    def test_the_number_of_requests_ends_a_wave_of_stages_early(self) -> None:
        found = bucket(load_of("10:1s,20:10s"), number=15, workers=2)
        assert [sum(found.count()), found.duration_ns()] == [15, int(1.25 * NS)]
        assert bucket(load_of("10:1s,20:1s"), number=500).duration_ns() == 2 * NS

    def test_a_number_of_requests_says_how_long_stages_are_expected_to_last(self) -> None:
        load = load_of("10:60s,100:60s")
        plan = WavePlan(load, Bounds(load.stages_s, 700))
        assert [plan.expected_s, replace(plan, bounds=Bounds(load.stages_s)).expected_s] == [61, 120]

    def test_the_warm_up_runs_at_the_first_rate(self) -> None:
        for kind in ("constant", "poisson"):
            warm = [a for a in merged(bucket(load_of("100..900:1s", kind), warmup_s="2", workers=3)) if a.index < 0]
            assert [arrival.index for arrival in warm] == list(range(-len(warm), 0))
            assert 200 - 50 < len(warm) < 200 + 50


class TestText:
    @pytest.mark.parametrize(
        ("text", "stage"),
        [
            ("50:30s", Stage(Decimal(50), Decimal(50), Decimal(30))),
            (" 50..400:2m ", Stage(Decimal(50), Decimal(400), Decimal(120))),
            ("spike=2000:10", Stage(Decimal(2000), Decimal(2000), Decimal(10), "spike")),
            ("end = 400 .. 0 : 1.5h", Stage(Decimal(400), Decimal(0), Decimal(5400), "end")),
            ("0.5:250ms", Stage(Decimal("0.5"), Decimal("0.5"), Decimal("0.25"))),
        ],
    )
    def test_it_is_read_and_written(self, text: str, stage: Stage) -> None:
        assert Stage.parse(text) == stage
        assert Stage.parse(stage.text) == stage

    @pytest.mark.parametrize(
        "text", ["", "50", "50:", ":30s", "-5:3s", "1e3:3s", "5:3d", "5...6:3s", "a=b=5:3s", "٥:3s"]
    )
    def test_what_is_no_stage_is_refused_with_an_example(self, text: str) -> None:
        with pytest.raises(BenchmarkError, match=r"is not a stage.* Write RATE:DURATION"):
            Stage.parse(text)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("0:30s", "at least one needs a rate above 0"),
            ("5:0s", "stage 1 .*must last from 0.001"),
            ("5:3s,1000001:3s", "stage 2 .*a rate must be 0 or from 0.000001 to 1,000,000 requests/s, not 1000001"),
            ("0.0000001:3s", r"from 0.000001 to 1,000,000 requests/s, not 0.0000001\."),
            ("a=5:3s,a=6:3s", "2 stages are called a"),
            ("7=5:3s", "is not a number"),
            ("5:700h,5:700h", "may last 2,592,000 seconds together"),
        ],
    )
    def test_a_bad_one_is_named_with_its_reason(self, text: str, problem: str) -> None:
        found = " ".join(each.text for each in load_of(text).problems())
        assert re.search(problem, found), found

    def test_a_rate_beside_stages_is_a_contradiction(self) -> None:
        found = OpenLoop(Decimal(3), stages=load_of("5:3s").stages)
        assert ["not both" in problem.text for problem in found.problems()] == [True]

    def test_the_rate_of_stages_is_their_mean_and_their_names_are_their_places(self) -> None:
        load = load_of("50:30s,spike=2000:10s,400..0:20s")
        assert load.rate == (Decimal(1500) + 20000 + 4000) / 60
        assert load.peak_rps == 2000
        assert load.stage_names == ("1", "spike", "3")
