"""The histogram of the live feed: percentiles within 1% of the exact ones, and parts that add up to the whole."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.words.units import NS
from tests.case import case

TIMES = st.lists(st.integers(0, 30 * 24 * 3600 * NS), max_size=60)
RANDOM = np.random.default_rng(7)
DISTRIBUTIONS = {
    "even": RANDOM.uniform(0, 1e9, 3000),
    "lognormal": RANDOM.lognormal(17, 1.5, 3000),
    "pareto": RANDOM.pareto(1.1, 3000) * 1e6,
    "two peaks": np.concatenate((RANDOM.normal(2e6, 1e5, 1500), RANDOM.normal(9e8, 1e7, 1500))),
    "a few ns": RANDOM.uniform(0, 300, 3000),
    "all alike": np.full(100, 123_456_789.0),
    "alone": np.array([7e15]),
    "powers of two": 2.0 ** np.arange(60),
}


def merged(*parts: Histogram) -> Histogram:
    total = Histogram()
    for part in parts:
        total.merge(part)
    return total


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_percentile_is_within_one_percent_of_the_exact_one(name: str) -> None:
    values = DISTRIBUTIONS[name].astype(np.int64)
    exact, counted = Distribution.of(values / NS), Histogram.of(values.tolist())
    assert exact is not None
    for percent in (0, 1, 50, 90, 95, 99, 99.9, 100):
        with case(percent):
            assert counted.percentile(percent) == pytest.approx(exact.percentile(percent), rel=0.0079)


@given(TIMES)
def test_one_by_one_is_as_all_at_once(values: list[int]) -> None:
    one_by_one = Histogram()
    for value in values:
        one_by_one.add(value)
    assert one_by_one == Histogram.of(values)
    assert one_by_one.count == len(values)


@given(TIMES, TIMES, TIMES)
def test_parts_add_up_to_the_whole_in_any_order(first: list[int], second: list[int], third: list[int]) -> None:
    a, b, c = map(Histogram.of, (first, second, third))
    whole = Histogram.of(first + second + third)
    assert merged(a, b, c) == merged(c, merged(b, a)) == merged(merged(a, b), c) == whole
    assert merged(a, b, c).count == whole.count


@given(TIMES)
def test_it_comes_back_from_its_json(values: list[int]) -> None:
    made = Histogram.of(values)
    back = Histogram.from_json(made.to_json())
    assert (back, back.count) == (made, made.count)


def test_whole_numbers_below_128_are_exact() -> None:
    assert [Histogram.of([value]).percentile(50) for value in range(128)] == [value / NS for value in range(128)]


def test_a_difference_below_zero_is_zero() -> None:
    assert Histogram.of([-1, -(10**12)]) == Histogram.of([0, 0])
    below = Histogram()
    below.add(-5)
    assert below.percentile(50) == 0


def test_the_share_below_a_limit() -> None:
    made = Histogram.of([10_000_000] * 3 + [90_000_000])
    assert made.share_below(0.05) == 0.75
    assert made.share_below(0) == 0
    assert made.share_below(1) == 1


def test_nothing_is_not_zero() -> None:
    assert Histogram().percentile(50) is None
    assert Histogram().share_below(1) is None


FORGED: list[Any] = [
    *(None, {}, "1,2", 7, [1], [1, 0], [1, -1], [1, 1 << 60], [-1, 1], [5, 1, 0, 1], [5, 1, -2, 1]),
    *([1 << 60, 1], [12_161, 1], [True, 1], [1, 1.0], ["1", "1"], [[1, 1]], [None, None]),
]


@pytest.mark.parametrize("data", FORGED, ids=str)
def test_what_is_no_histogram_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="a histogram"):
        Histogram.from_json(copy.deepcopy(data))


@settings(max_examples=20)
@given(st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=20))
def test_anything_is_read_or_refused(data: Any) -> None:
    with contextlib.suppress(ValueError):
        Histogram.from_json(data).percentile(99)
