from __future__ import annotations

import math
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_capacity.metrics.cloudwatch.buckets import (
    Span,
    changes,
    combination,
    combine,
    covering,
    inner,
    is_period,
    is_statistic,
    needs,
    one_bucket,
)

NOON = 1_782_129_600  # 2026-06-22 12:00:00 UTC
PERIODS = st.sampled_from([1, 5, 10, 20, 30, 60, 120, 300])


@pytest.mark.parametrize(
    ("start", "end", "period", "around", "inside"),
    [
        (17, 167, 60, (0, 180), (60, 120)),  # the wave of 12:00:17 to 12:02:47
        (17, 167, 10, (10, 170), (20, 160)),
        (0, 180, 60, (0, 180), (0, 180)),
        (17, 22, 60, (0, 60), None),
        (58, 63, 60, (0, 120), None),
        (17, 118, 60, (0, 120), None),
        (60, 60, 60, (60, 120), None),
        (0.2, 60.0, 60, (0, 60), None),
        (17, 400, 300, (0, 600), None),
    ],
)
def test_windows(
    start: float, end: float, period: int, around: tuple[int, int], inside: tuple[int, int] | None
) -> None:
    def from_noon(span: Span | None) -> tuple[int, int] | None:
        return None if span is None else (span.start - NOON, span.end - NOON)

    assert from_noon(covering(NOON + start, NOON + end, period)) == around
    assert from_noon(inner(NOON + start, NOON + end, period)) == inside


@given(st.floats(0, 1e5), st.floats(0, 1e5), PERIODS)
def test_windows_hold_and_are_held(offset: float, length: float, period: int) -> None:
    start, end = NOON + offset, NOON + offset + length
    around, inside = covering(start, end, period), inner(start, end, period)
    assert around.start <= start
    assert end <= around.end
    assert around.length < length + 2 * period + 1e-3
    assert around.start % period == around.end % period == 0
    if inside is not None:
        assert start <= inside.start < inside.end <= end
        assert inside.start % period == inside.end % period == 0
    else:
        assert length < 2 * period


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 180, (0, 180)),
        (10, 170, (0, 180)),
        (10, 20, (10, 20)),
        (10, 40, (0, 60)),
        (30, 60, (30, 60)),
        (50, 70, (0, 120)),
        (0, 86_400, (0, 86_400)),
        (0, 86_410, None),
    ],
)
def test_what_does_not_combine_is_asked_as_one_bucket(start: int, end: int, expected: tuple[int, int] | None) -> None:
    found = one_bucket(Span(NOON + start, NOON + end))
    assert (found and (found.start - NOON, found.end - NOON)) == expected
    assert found is None or is_period(found.length)


@pytest.mark.parametrize(
    ("statistic", "how"),
    [
        ("Sum", "add"),
        ("SampleCount", "add"),
        ("Maximum", "maximum"),
        ("Minimum", "minimum"),
        ("Average", "weighted"),
        ("PR(:300)", "weighted"),
        ("TC(0.005:0.030)", "add"),
        ("TS(100:)", "add"),
        ("p99", "none"),
        ("p99.9", "none"),
        ("tm99", "none"),
        ("TM(150:1000)", "none"),
        ("TM(2%:98%)", "none"),
        ("TC(2%:98%)", "none"),
        ("tc90", "none"),
        ("ts90", "none"),
        ("IQM", "none"),
        ("wm98", "none"),
    ],
)
def test_how_a_statistic_combines(statistic: str, how: str) -> None:
    assert is_statistic(statistic)
    assert combination(statistic) == how
    assert (needs(statistic) == ()) == (how == "none")


@pytest.mark.parametrize(
    "text",
    ["", "average", "Max", "p", "p101", "p99.", "P99", "p-1", "TM()", "TM(:)", "TM(a:b)", "PR(1)", "p99 ", "PR(1:2:3)"],
)
def test_what_is_no_statistic(text: str) -> None:
    assert not is_statistic(text)


def test_periods() -> None:
    legal = [seconds for seconds in range(-60, 200) if is_period(seconds)]
    assert legal == [1, 5, 10, 20, 30, 60, 120, 180]
    assert is_period(86_400)
    assert not is_period(86_460)


def test_a_gauge_is_diluted_at_the_edges_but_not_inside() -> None:
    start, end, busy = NOON + 17, NOON + 167, 312.0
    average = {NOON: busy * 43 / 60, NOON + 60: busy, NOON + 120: busy * 47 / 60}
    series = {"Average": average, "SampleCount": dict.fromkeys(average, 1.0)}
    inside = inner(start, end, 60)
    assert inside is not None
    assert combine("Average", series, inside) == busy
    around = combine("Average", series, covering(start, end, 60))
    assert around == pytest.approx(260)
    assert [round(value) for value in average.values()] == [224, 312, 244]


def test_an_average_is_weighted() -> None:
    """100/s for 150 s from :17 on, 50 ms in the first bucket and 150 ms after: 4,300 and 10,700 requests."""
    series = {
        "Average": {NOON: 50.0, NOON + 60: 150.0, NOON + 120: 150.0},
        "SampleCount": {NOON: 4300.0, NOON + 60: 6000.0, NOON + 120: 4700.0},
    }
    truth = (4300 * 50 + 10_700 * 150) / 15_000
    assert combine("Average", series, Span(NOON, NOON + 180)) == pytest.approx(truth)
    assert truth > sum(series["Average"].values()) / 3 + 4  # which the plain mean would miss


def test_nothing_is_none_and_an_unweighable_average_too() -> None:
    assert combine("Sum", {}, Span(0, 60)) is None
    assert combine("Sum", {"Sum": {60: 1.0}}, Span(0, 60)) is None
    assert combine("Average", {"Average": {0: 1.0}}, Span(0, 60)) is None
    assert combine("Average", {"Average": {0: 1.0}, "SampleCount": {0: 0.0}}, Span(0, 60)) is None


def test_a_percentile_of_several_buckets_is_not_made_up() -> None:
    assert combine("p99", {"p99": {0: 1.0, 60: 2.0}}, Span(0, 120)) is None
    assert combine("p99", {"p99": {0: 1.0}}, Span(0, 120)) == 1.0


def test_changes() -> None:
    assert changes([]) == []
    assert changes([1, 1, 1]) == [1]
    assert changes([1, 1, 2, 2, 1]) == [1, 2, 1]


VALUES = st.lists(st.tuples(st.integers(0, 3_600_000), st.floats(-1e6, 1e6)), min_size=1, max_size=60)


@given(VALUES, PERIODS)
def test_any_split_into_buckets_gives_the_raw_truth(values: list[tuple[int, float]], period: int) -> None:
    buckets: dict[int, list[float]] = defaultdict(list)
    for moment, value in values:
        buckets[NOON + moment // (1000 * period) * period].append(value)
    series = {
        "Sum": {at: math.fsum(each) for at, each in buckets.items()},
        "SampleCount": {at: float(len(each)) for at, each in buckets.items()},
        "Average": {at: math.fsum(each) / len(each) for at, each in buckets.items()},
        "Maximum": {at: max(each) for at, each in buckets.items()},
        "Minimum": {at: min(each) for at, each in buckets.items()},
    }
    raw = [value for _, value in values]
    span = covering(NOON + min(values)[0] / 1000, NOON + max(values)[0] / 1000 + 0.001, period)
    assert combine("SampleCount", series, span) == len(raw)
    assert combine("Maximum", series, span) == max(raw)
    assert combine("Minimum", series, span) == min(raw)
    assert combine("Sum", series, span) == pytest.approx(math.fsum(raw), abs=1e-6)
    assert combine("Average", series, span) == pytest.approx(math.fsum(raw) / len(raw), abs=1e-6)
    limits = {at: 100 * sum(value <= 0 for value in each) / len(each) for at, each in buckets.items()}
    share = combine("PR(:0)", {**series, "PR(:0)": limits}, span)
    assert share == pytest.approx(100 * sum(value <= 0 for value in raw) / len(raw), abs=1e-6)
