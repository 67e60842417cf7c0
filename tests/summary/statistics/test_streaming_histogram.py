"""A sample that comes in parts is what it is as a whole; one that is counted is as near as it says."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.report.summary_json import times
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.summary.statistics.streaming_histogram import MOST_EXACT, PRECISION, StreamingHistogram

TIMES = st.floats(1e-9, 1e5) | st.just(0.0) | st.floats(-1e3, -1e-9)
PARTS = st.lists(st.lists(TIMES, max_size=20), min_size=1, max_size=6)


def _tally(parts: list[list[float]], most_held: int) -> StreamingHistogram:
    tally = StreamingHistogram(most_held)
    for part in parts:
        tally.add(part)
    return tally


@given(PARTS, st.lists(st.floats(0, 1e5), max_size=3))
def test_a_small_sample_is_kept_as_it_is(parts: list[list[float]], ages: list[float]) -> None:
    assert _tally(parts, 1000).distribution(ages) == Distribution.of(list(chain(*parts)), ages)


@given(PARTS, st.lists(st.floats(0, 1e5), max_size=3), st.integers(0, 30))
def test_a_large_one_is_counted_in_buckets(parts: list[list[float]], ages: list[float], most_held: int) -> None:
    found, whole = _tally(parts, most_held).distribution(ages), Distribution.of(list(chain(*parts)), ages)
    if found is None or whole is None:
        assert found is whole
        return
    assert (found.count, found.minimum, found.maximum) == (whole.count, whole.minimum, whole.maximum)
    assert math.isclose(found.mean, whole.mean, rel_tol=1e-9, abs_tol=1e-9)
    assert math.isclose(found.stdev, whole.stdev, rel_tol=1e-6, abs_tol=1e-6)
    for percent in (0, 1, 50, 90, 99.9, 100):
        value = whole.percentile(percent)
        assert abs(found.percentile(percent) - value) <= max(found.precision * abs(value), 1e-9)
        assert found.is_lower_bound(found.percentile(percent)) >= whole.is_lower_bound(value)
    if found.lower_bound_from is None or whole.lower_bound_from is None:
        assert found.lower_bound_from is whole.lower_bound_from
    else:
        below = whole.lower_bound_from - found.lower_bound_from
        assert 0 <= below <= max(found.precision * whole.lower_bound_from, 1e-9)
    assert abs(found.median - whole.median) <= max(found.precision * abs(whole.values).max(), 1e-9)


def test_a_sample_is_counted_from_a_stated_size_on() -> None:
    values = np.random.default_rng(1).lognormal(-4, 1, MOST_EXACT)
    tally = StreamingHistogram()
    tally.add(values)
    exact = tally.distribution()
    tally.add([0.5])
    counted = tally.distribution()
    assert exact is not None
    assert counted is not None
    assert (exact.precision, counted.precision) == (0.0, PRECISION)
    assert exact.percentile(99) == Distribution.of(values).percentile(99)  # type: ignore[union-attr]
    whole = Distribution.of([*values, 0.5])
    assert whole is not None
    assert counted.percentile(99) == pytest.approx(whole.percentile(99), rel=PRECISION)
    assert encoded(times(counted))["precision"] == PRECISION
    assert "precision" not in encoded(times(exact))


def test_one_value_that_is_counted_is_exact() -> None:
    tally = _tally([[0.02] * 5], 0)
    found = tally.distribution()
    assert found is not None
    assert {found.percentile(percent) for percent in (0, 50, 99.9, 100)} == {0.02}


def test_a_lower_bound_is_reported_as_one_though_its_bucket_has_a_lower_middle() -> None:
    ages = np.linspace(30.00150, 30.00190, 100)
    found = _tally([[0.02] * 900], 0).distribution(ages)
    assert found is not None
    assert found.percentile(95) < ages[0]
    assert found.is_lower_bound(found.percentile(95))
    assert not found.is_lower_bound(found.percentile(90))
