"""The samples that a PromQL query reads: selectors and ranges found in its text."""

from __future__ import annotations

import pytest

from server_capacity.metrics.prometheus.promql.selectors import instant_selectors, longest_range_s


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
    ("query", "seconds"),
    [
        ("x", 0),
        ("rate(x[{window}])", 0),
        ("rate(x[1m30s]) / rate(y[ 5m ])", 300),
        ("max_over_time(rate(x[1m])[1h:5m])", 3600),
    ],
)
def test_the_longest_range_is_read(query: str, seconds: float) -> None:
    assert longest_range_s(query) == seconds
