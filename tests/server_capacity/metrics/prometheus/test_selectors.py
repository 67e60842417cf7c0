"""The samples that a PromQL query reads: selectors and ranges found in its text."""

from __future__ import annotations

import math

import pytest

from server_capacity.metrics.prometheus.promql.answers import fill
from server_capacity.metrics.prometheus.promql.selectors import extrapolated_selectors, instant_selectors, reach_s


@pytest.mark.parametrize(
    ("query", "selectors"),
    [
        ("x", ["x"]),
        ("max(x)", ["x"]),
        ("job:x:rate5m > bool 3", ["job:x:rate5m"]),
        ('sum by (a, b) (x{c="}"}) / on (a) group_left (d) y', ['x{c="}"}', "y"]),
        ("sum(x) without (pod)", ["x"]),
        ('{__name__="x"} and on() y', ['{__name__="x"}', "y"]),
        ('label_replace(x, "to", "$1", "from", "(y)")', ["x"]),
        ("avg_over_time(x[5m]) + 1e3 * z # y", ["z"]),
        ("time() - x", ["x"]),
        ("rate(x[{window}]) / rate(y{a='b'}[{window}])", []),
        ("x offset 5m + y @ 123 - vector(1)", []),
    ],
)
def test_instant_selectors_are_those_without_a_range_or_another_time(query: str, selectors: list[str]) -> None:
    assert instant_selectors(query) == selectors


@pytest.mark.parametrize(
    ("query", "selectors"),
    [
        ("sum(rate(x[{window}])) / increase(y{a='b'}[ {window} ])", ["x", "y{a='b'}"]),
        ("rate(x[{window}]) / rate(x[{window}])", ["x"]),
        ("avg_over_time(x[{window}]) + rate(y[30s]) + z", []),
        ("increase(x[{window}] offset 5m) + rate(y[{window}:1s])", []),
        ('{__name__="x"} + delta({__name__="x"}[{window}])', ['{__name__="x"}']),
    ],
)
def test_what_is_extrapolated_to_the_window_is_found(query: str, selectors: list[str]) -> None:
    assert extrapolated_selectors(query) == selectors


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("x", 0),
        ("rate(x[{window}])", 8),
        ("rate(x[1m30s]) / rate(y[ 5m ])", 300),
        ("max_over_time(rate(x[1m])[1h:5m])", 3660),
        ("max_over_time(sum(rate(x[{window}]))[{window}:1s])", 16),
        ("max_over_time((sum by (a) (rate(x[10s])) / sum(rate(y[20s])) without (b))[10s:1s])", 30),
        ("max_over_time(max_over_time(rate(x[1s])[2s:])[4s:] offset 8s) + z", 15),
        ("rate(x[5m]) + max_over_time((y)[1m:])", 300),
        ("max_over_time(sum(rate(x[5m])) by (a)[1m:1s])", 360),
        ("rate(x[{window}] offset {window})", 16),
        ("x - x offset 5m", 300),
        ("rate(x[1m] offset -30s)", 60),
        ("rate(x[300]) + rate(y[0.5])", 300),
        ("rate(x[1.5m])", 90),
        ("rate(x[1e3])", 1000),
        ("rate(x[5i])", math.inf),
        ("rate(x[$__rate_interval])", math.inf),
        ("rate(x[5m * 2])", math.inf),
        ("x offset step()", math.inf),
        ("x @ 1700000000", math.inf),
        ('rate(x{a="y[1h]"}[5s])', 5),
        ("rate(x[5m]))) + ((y[1m]", 300),
    ],
)
def test_ranges_and_offsets_reach_back_as_far_as_they_add_up_to(query: str, seconds: float) -> None:
    """What cannot be read may reach back any time."""
    assert reach_s(fill(query, 8)) == seconds
