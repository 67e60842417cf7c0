"""The text format and its arithmetic: tables, round trips, and quantiles against Prometheus' own definition."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server_capacity.metrics.prometheus.deltas import (
    Bin,
    Estimate,
    bins_of,
    bucket_increase,
    increase,
    maximum,
    minimum,
    quantile,
)
from server_capacity.metrics.prometheus.exposition import (
    ExpositionError,
    Labels,
    Sample,
    escape,
    parse,
    parse_selector,
    render_selector,
    unescape,
)

INF = math.inf

LINES: dict[str, Sample] = {
    "up 1": Sample("up", (), 1.0),
    "up\t 1e3 ": Sample("up", (), 1000.0),
    "up{} 1": Sample("up", (), 1.0),
    "vllm:num_requests_running 2": Sample("vllm:num_requests_running", (), 2.0),
    'up{b="2",a="1"} 1': Sample("up", (("a", "1"), ("b", "2")), 1.0),
    'up {a="1"} 1': Sample("up", (("a", "1"),), 1.0),
    'up{ a = "1" , } 1': Sample("up", (("a", "1"),), 1.0),
    'up{a="x\\\\y\\"z\\nq"}1': Sample("up", (("a", 'x\\y"z\nq'),), 1.0),
    'up{a="C:\\d"} 1': Sample("up", (("a", "C:\\d"),), 1.0),
    'up{a="}, # {"} 1': Sample("up", (("a", "}, # {"),), 1.0),
    'up{a="\u2028\x85"} 1': Sample("up", (("a", "\u2028\x85"),), 1.0),
    'up{a=""} +Inf': Sample("up", (("a", ""),), INF),
    "up -Inf": Sample("up", (), -INF),
    "up 1 1500": Sample("up", (), 1.0, 1.5),
    'up_bucket{le="1"} 3 # {trace_id="a b"} 0.5 1.2': Sample("up_bucket", (("le", "1"),), 3.0),
    '{"my.metric",a="1"} 4': Sample("my.metric", (("a", "1"),), 4.0),
    'up{"a.b"="1"} 4': Sample("up", (("a.b", "1"),), 4.0),
    "up 1\r": Sample("up", (), 1.0),
}


@pytest.mark.parametrize(("line", "sample"), LINES.items(), ids=LINES)
def test_a_line_is_a_sample(line: str, sample: Sample) -> None:
    assert parse(f"# HELP up is {{up}}\n\n{line}\n").samples == (sample,)


@pytest.mark.parametrize(
    "line",
    ["up", "up{", 'up{a="1" 1', 'up{a=1} 1', 'up{a="1"} x', "up 1 2 3", "up 1_0", "1up 1", 'up{a="1",a="2"} 1',
     'up{a} 1', "{} 1", 'up{"b",a="1"} 1', "up-down 1", "<html>", '{"a","b"} 1', 'up{a="1"b="2"} 1'],
)  # fmt: skip
def test_a_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(ExpositionError, match="line 2 is not in Prometheus' text format"):
        parse(f"ok 1\n{line}\n")


def test_nan_is_read() -> None:
    assert math.isnan(parse("a NaN").samples[0].value)


def test_types_and_units_are_kept() -> None:
    page = parse('# TYPE a counter\n# UNIT a seconds\n# TYPE "b.c"  gauge\n#TYPE x counter\n# EOF\n')
    assert page.types == {"a": "counter", "b.c": "gauge"}
    assert page.units == {"a": "seconds"}


def test_timestamps_are_milliseconds_but_seconds_in_openmetrics() -> None:
    assert parse("a 1 2500\n").samples[0].timestamp == 2.5
    assert parse("a 1 2.5\n# EOF\n").samples[0].timestamp == 2.5


def test_an_openmetrics_page_without_its_end_was_cut_off() -> None:
    with pytest.raises(ExpositionError, match="cut off"):
        parse("a 1\n", openmetrics=True)
    assert parse("a 1\n# EOF\n", openmetrics=True).samples


def test_other_names_are_not_looked_at() -> None:
    page = parse('a 1\nb{broken 2\n{"c"} 3\n{"d"} 4\n', names={"a", "c"})
    assert [sample.name for sample in page.samples] == ["a", "c"]


NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,20}", fullmatch=True)
KEYS = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,10}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
LABELS = st.dictionaries(KEYS, TEXTS, max_size=4).map(lambda labels: tuple(sorted(labels.items())))


@given(TEXTS)
def test_escaping_is_undone(text: str) -> None:
    assert unescape(escape(text)) == text
    assert "\n" not in escape(text)


@given(NAMES, LABELS, st.floats(allow_nan=False), st.none() | st.integers(0, 2**45))
def test_what_is_written_is_read(name: str, labels: Labels, value: float, timestamp: int | None) -> None:
    line = f"{render_selector(name, labels)} {value!r}" + (f" {timestamp}" if timestamp is not None else "")
    (sample,) = parse(line + "\n").samples
    assert (sample.name, sample.labels) == (name, labels)
    assert sample.value == value or (1e100 < abs(value) < math.inf and math.isnan(sample.value))
    assert sample.timestamp == (None if timestamp is None else timestamp * 1e-3)
    assert parse_selector(render_selector(name, labels)) == (name, labels)


@given(st.text(max_size=60))
def test_any_text_is_a_page_or_an_exposition_error(text: str) -> None:
    try:
        parse(text)
        parse_selector(text)
    except ExpositionError:
        pass


@pytest.mark.parametrize("selector", ["", "a b", 'a{b="1"} 2', "1a", "a{b}"])
def test_a_selector_that_is_none_is_reported(selector: str) -> None:
    with pytest.raises(ExpositionError, match="must be a metric's name"):
        parse_selector(selector)


@pytest.mark.parametrize(
    ("values", "gained"),
    [([], 0), ([5], 0), ([5, 5], 0), ([0, 3, 10], 10), ([7, 2], 2), ([7, 0, 4], 4), ([1, 5, 3, 4, 1], 4 + 3 + 1 + 1)],
)
def test_a_counter_that_falls_began_again_from_zero(values: list[float], gained: float) -> None:
    assert increase(values) == gained


@given(st.lists(st.integers(0, 1000), min_size=1), st.sets(st.integers(0, 50)))
def test_every_step_of_a_counter_is_found_whatever_resets(steps: list[int], resets: set[int]) -> None:
    seen, value, lost = [0.0], 0.0, 0.0
    for index, step in enumerate(steps):
        if index in resets and step >= value:  # such a reset cannot be seen: Prometheus takes it for a gain too
            lost += value
        value = step if index in resets else value + step
        seen.append(value)
    assert increase(seen) == sum(steps) - lost


def test_one_bucket_that_fell_is_a_reset_of_all() -> None:
    assert bucket_increase([(5, 9), (6, 12)]) == (1, 3)
    assert bucket_increase([(5, 9), (1, 12)]) == (1, 12)


Buckets = tuple[tuple[float, float], ...]
QUANTILES: list[tuple[float, Buckets, float | str | None]] = [
    (0.5, ((0.1, 10), (INF, 10)), "<= 0.1"),  # nobody knows where in the first bucket
    (0.5, ((1, 0), (2, 10), (INF, 10)), 1.5),
    (0.9, ((1, 5), (2, 10), (INF, 10)), 1.8),
    (0.99, ((1, 5), (2, 10), (INF, 1000)), ">= 2"),  # beyond the last finite bound
    (0.5, ((-1, 5), (1, 10), (INF, 10)), "<= -1"),  # a first bucket at or below zero
    (0.5, ((1, 5), (2, 10), (INF, 10)), "<= 1"),  # its very bound
    (1.0, ((1, 5), (2, 10), (INF, 10)), 2),
    (0.0, ((1, 5), (INF, 5)), "<= 1"),
    (0.0, ((1, 0), (2, 5), (INF, 5)), 1),
    (0.5, ((1, 0), (INF, 0)), None),
    (0.5, ((1, 5), (2, 10)), None),  # no +Inf
    (0.5, ((INF, 10),), None),
]


def reported(estimate: Estimate | None) -> float | str | None:
    """A number, a bound with its sign before it, or nothing."""
    if estimate is None:
        return None
    if estimate.bound is None:
        return estimate.value
    return f"{'<=' if estimate.bound == 'at_most' else '>='} {estimate.value:g}"


@pytest.mark.parametrize(("q", "buckets", "expected"), QUANTILES)
def test_quantiles_are_prometheus_or_a_bound(q: float, buckets: Buckets, expected: float | str | None) -> None:
    found = reported(quantile(q, bins_of(buckets)))
    assert found == (pytest.approx(expected) if isinstance(expected, (int, float)) else expected)


@pytest.mark.parametrize(
    ("buckets", "least", "most"),
    [
        (((1, 0), (2, 3), (4, 5), (8, 5), (INF, 5)), ">= 1", "<= 4"),
        (((1, 3), (2, 3), (INF, 3)), "<= 1", "<= 1"),
        (((1, 0), (2, 3), (INF, 5)), ">= 1", ">= 2"),
        (((1, 0), (2, 0), (INF, 5)), ">= 2", ">= 2"),
        (((1, 0), (INF, 0)), None, None),
        (((1, 3), (2, 3)), None, None),
        (((INF, 3),), None, None),
    ],
)
def test_extremes_are_what_buckets_tell(buckets: Buckets, least: str | None, most: str | None) -> None:
    assert reported(minimum(bins_of(buckets))) == least
    assert reported(maximum(bins_of(buckets))) == most


def test_bins_of_any_shape_are_read_alike() -> None:
    """Native histograms: bins of their own, a zero bin among them, only those that hold something."""
    bins = [Bin(-0.5, 0.5, 2), Bin(2, 4, 2), Bin(8, 16, 4)]
    assert [reported(quantile(q, bins)) for q in (0.2, 0.5, 0.75, 1.0)] == ["<= 0.5", 4, 12, 16]
    assert (reported(minimum(bins)), reported(maximum(bins))) == ("<= 0.5", "<= 16")
    assert (reported(minimum(bins[1:])), quantile(0.5, [])) == (">= 2", None)


def test_buckets_that_disagree_are_made_monotonic() -> None:
    assert reported(quantile(7 / 8, bins_of(((1, 6), (2, 5), (3, 8), (INF, 8))))) == pytest.approx(2.5)


COUNTS = st.lists(st.integers(0, 50), min_size=2, max_size=12).filter(any)


@given(COUNTS, st.floats(0.001, 1))
def test_a_quantile_has_its_share_below_it(counts: list[int], q: float) -> None:
    bounds = [*map(float, range(1, len(counts))), INF]
    cumulative = list(map(float, accumulate(counts)))
    buckets = tuple(zip(bounds, cumulative, strict=True))
    found = quantile(q, bins_of(buckets))
    assert found is not None
    if found.bound is not None:
        first = found.bound == "at_most"
        assert found.value == (bounds[0] if first else bounds[-2])
        assert q * cumulative[-1] <= cumulative[0] + 1e-9 if first else q * cumulative[-1] >= cumulative[-2] - 1e-9
        return
    below = 0.0  # the share at or below ``found`` when each bucket is spread evenly
    for index, count in enumerate(counts[:-1]):
        below += count * min(1.0, max(0.0, found.value - index))
    assert below == pytest.approx(q * cumulative[-1], abs=1e-6)
