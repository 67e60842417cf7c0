"""The ends of intervals, moved by what they lacked on endpoints of many kinds."""

from __future__ import annotations

import math

import pytest

from server_capacity.search.answer import Interval
from server_capacity.search.curve import ENDS, Fit, calibrated, ends_for


@pytest.mark.parametrize("answers", [0.0, 1.0, 299.0, 300.0, 9_999.0, 10_000.0, math.inf])
def test_an_end_is_moved_in_ln_of_the_rate_and_nothing_else_is(answers: float) -> None:
    fit, ends = Fit(100.0, Interval(80.0, 110.0), 0.1, 20.0, 100.0), ends_for(answers)
    found = calibrated(fit, answers)
    assert math.log(found.interval.low / 100.0) == pytest.approx(ends.lower * math.log(0.8))
    assert math.log(found.interval.high / 100.0) == pytest.approx(ends.upper * math.log(1.1))
    assert (found.rate, found.sd, found.slope, found.dispersion) == (100.0, 0.1, 20.0, 100.0)


def test_every_search_has_ends_of_its_class() -> None:
    assert ENDS[0].answers == 0.0
    assert sorted(ENDS) == list(ENDS)
    assert [ends_for(each.answers) for each in ENDS] == list(ENDS)
    assert ends_for(299.0) == ENDS[0]
    assert all(0.5 <= end <= 3.0 for each in ENDS for end in each[1:])
