"""The utilisation law: lines through what was measured, and where they reach a limit."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.records.columns import Floats
from server_capacity.experiments.server_side.utilisation import Line, Point, line_through
from server_capacity.search.answer import Interval


def measured(rates: Iterable[float], values: Iterable[float], seconds: float = 60.0) -> list[Point]:
    return [Point(float(rate), float(value), seconds) for rate, value in zip(rates, values, strict=True)]


def line_of(points: list[Point]) -> Line:
    line = line_through(points)
    assert line is not None
    return line


def reached(line: Line, bound: float) -> tuple[float, Interval]:
    found = line.reaches(bound)
    assert found is not None
    return found


def test_two_rates_tell_the_demand_and_the_rate_at_a_limit() -> None:
    line = line_of(measured([0, 100], [4, 204]))
    assert [line.idle, line.demand] == pytest.approx([4, 2])
    assert line.at(50) == pytest.approx(104)
    rate, interval = reached(line, 284)
    assert rate == pytest.approx(140)
    assert 100 < interval.low < 140 < interval.high < 180


def test_more_points_tell_it_better() -> None:
    few, many = (line_of(measured(rates, 4 + 2 * rates)) for rates in (np.arange(2) * 150.0, np.arange(16) * 10.0))
    assert reached(many, 284)[1].width < reached(few, 284)[1].width / 2


def test_one_rate_alone_makes_no_line() -> None:
    assert line_through(measured([100, 101], [200, 202])) is None
    assert line_through(measured([100], [200])) is None
    assert line_through([]) is None
    assert line_through(measured([0, 0], [3, 3])) is None


def test_a_metric_that_does_not_grow_reaches_nothing() -> None:
    assert line_of(measured([0, 50, 100, 150], [20, 20, 20, 20])).reaches(80) is None


def test_what_falls_reaches_its_limit_from_above() -> None:
    rate, _ = reached(line_of(measured([0, 50, 100], [100, 75, 50])), 20)
    assert rate == pytest.approx(160)


@pytest.mark.parametrize(
    ("shape", "bent"),
    [
        (lambda rate: 5 + 2 * rate, False),
        (lambda rate: 5 + rate**2 / 75, True),
        (lambda rate: np.minimum(300, 4 * rate), True),
        (lambda rate: 300 + 0 * rate, False),
    ],
)
def test_what_is_no_line_is_reported(shape: Callable[[Floats], Floats], bent: bool) -> None:
    rates = np.arange(0, 160, 10.0)
    assert line_of(measured(rates, shape(rates))).bent is bent


def test_three_points_are_not_called_bent() -> None:
    assert not line_of(measured([0, 50, 100], [0, 20, 100])).bent


@pytest.mark.parametrize(("points", "noise"), [(2, 0.01), (3, 0.02), (6, 0.02), (12, 0.05), (60, 0.1)])
def test_the_interval_holds_the_rate_in_at_least_92_of_100_cases(points: int, noise: float) -> None:
    draw = np.random.default_rng(points)
    rates = np.linspace(0, 150, points)
    held = bent = 0
    for _ in range(400):
        values = 5 + 2 * rates + draw.normal(0, noise * 305, points)
        line = line_of(measured(rates, values))
        interval = reached(line, 365)[1]
        held += interval.low <= 180 <= interval.high
        bent += line.bent
    assert held >= 0.92 * 400
    assert bent <= 0.03 * 400


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_of_rate_and_value_change_nothing(faster: float, larger: float) -> None:
    rates, values = np.array([0.0, 40, 90, 150]), np.array([3.0, 85, 181, 305])
    rate, interval = reached(line_of(measured(rates, values, 1e6)), 365)
    scaled, wide = reached(line_of(measured(rates * faster, values * larger, 1e6 / faster)), 365 * larger)
    assert scaled == pytest.approx(rate * faster)
    assert [wide.low, wide.high] == pytest.approx([interval.low * faster, interval.high * faster])
