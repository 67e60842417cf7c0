"""One-minute windows at the interval's lower end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_capacity.experiments.measurements.windows import drift, predicted_windows, wilson, windows_kept, windows_of
from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.limits import Limit
from server_capacity.search.stretch import Count, Slice, Stretch

if TYPE_CHECKING:
    from collections.abc import Sequence

P99 = Limit("p99<100ms", "response_time", 0.01, 0.1)


def stretch_of(over: Sequence[int], of: int = 100) -> Stretch:
    """A second for each number of requests that were over the limit."""
    slices = tuple(Slice(10.0 + s, 11.0 + s, of, of, (Count(of, each),)) for s, each in enumerate(over))
    return Stretch(0, 100.0, 10.0, 10.0 + len(over), slices, "confirm")


def test_only_whole_windows_count_and_each_by_its_own_requests() -> None:
    over = [0] * 60 + [2] * 60 + [60, *[0] * 59] + [0] * 30

    assert windows_kept(stretch_of(over), [P99]) == [True, False, True]


def test_every_limit_must_be_kept() -> None:
    success = Limit("success>=0.99", "success", 0.01)
    slices = tuple(Slice(s, s + 1.0, 100, 100, (Count(100, 0), Count(100, 2))) for s in range(60))

    assert windows_kept(Stretch(0, 100.0, 0.0, 60.0, slices, "confirm"), [P99, success]) == [False]


def test_windows_of_a_wave_that_was_spoilt_do_not_count() -> None:
    def confirmed(over: int, spoilt: str = "") -> Any:
        return SimpleNamespace(stage=SimpleNamespace(stretch=stretch_of([over] * 60)), spoilt=spoilt)

    reported = windows_of(cast("Any", [confirmed(0), confirmed(50, "schedule lag")]), [P99])
    assert reported is not None
    assert (reported.windows, reported.kept) == (1, 1)
    assert windows_of(cast("Any", [confirmed(0, "schedule lag")]), [P99]) is None


@given(st.integers(1, 500), st.data())
def test_a_shares_interval_holds_it_and_lies_within_0_and_1(of: int, data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, of))

    low, high = wilson(kept, of)

    assert 0 <= low <= kept / of + 1e-12
    assert kept / of - 1e-12 <= high <= 1


def test_wilson_is_that_of_the_books() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_a_drift_is_distinguished_from_chance() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.001, 30)

    assert drift([0.02, 0.021]) is None
    steady = drift((0.02 + noise).tolist())
    assert steady is not None
    assert not steady.clear
    rising = drift((0.02 + noise + np.linspace(0, 0.02, 30)).tolist())
    assert rising is not None
    assert rising.clear
    assert [rising.first, rising.last] == pytest.approx([0.02, 0.04], abs=0.002)


def test_where_no_window_was_measured_the_bursts_foretell_their_share() -> None:
    estimate = Estimate(P99.expression, 174.0, Interval(165.0, 180.0), 26.0, 250.0)
    found = predicted_windows(Answer("found", 174.0, estimate.interval, P99.expression, estimates=(estimate,)), [P99])
    assert found is not None
    assert (found.windows, found.interval) == (0, None)
    assert found.share is not None
    assert 0.5 < found.share < 1.0
    assert predicted_windows(Answer("not_kept"), [P99]) is None
