"""Figures as metrics: the counts are those of the requests, quantiles are near, counters never go down."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.export.buckets import EDGES_S, Buckets, buckets_of
from inference_benchmarker.export.exporter import Exporter, endpoint_of
from inference_benchmarker.export.figures import MOST_ERRORS, Count, Figures, Now
from inference_benchmarker.export.metric_rows import metrics_of
from inference_benchmarker.export.page import exposition
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.label_counters import ValueCounts
from inference_benchmarker.records.names import OTHER
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.verdict.verdict import Verdict
from inference_benchmarker.words.units import NS
from tests.exported import Samples, count_of, figures, sample, samples
from tests.waves import open_plan, wave

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inference_benchmarker.export.metric import Metric

TIMES = st.lists(st.floats(1e-5, 900), min_size=1, max_size=200)


def page(*given: Count) -> Samples:
    return samples(exposition(metrics_of(map(figures, given))).decode())


def test_the_edges_are_close_and_those_of_limits_are_among_them() -> None:
    assert all(1 < after / before < 1.201 for before, after in pairwise(EDGES_S))
    assert {0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 1000.0} <= set(EDGES_S)


@given(TIMES)
def test_every_time_is_in_a_bucket_and_the_sum_is_near(seconds: list[float]) -> None:
    found = buckets_of(Histogram.of(round(each * NS) for each in seconds))
    assert found.count == len(seconds)
    assert found.total == pytest.approx(sum(seconds), rel=0.01)
    assert found.least == pytest.approx(min(seconds), rel=0.01)
    assert found.most == pytest.approx(max(seconds), rel=0.01)


@given(TIMES, st.sampled_from([0.5, 0.9, 0.99]))
def test_a_quantile_as_prometheus_computes_it_is_within_its_bucket(seconds: list[float], q: float) -> None:
    exact = sorted(seconds)[max(math.ceil(q * len(seconds)) - 1, 0)]
    found = quantile(buckets_of(Histogram.of(round(each * NS) for each in seconds)), q)
    assert exact / 1.22 <= found <= exact * 1.22


def quantile(buckets: Buckets, q: float) -> float:
    """As PromQL's histogram_quantile has it: straight lines within buckets."""
    cumulative = list(buckets.cumulative())
    rank = q * buckets.count
    place = bisect_left([count for _, count in cumulative], rank)
    if place >= len(EDGES_S):
        return EDGES_S[-1]
    below, start = (cumulative[place - 1][1], cumulative[place - 1][0]) if place else (0, 0.0)
    edge, count = cumulative[place]
    return start + (edge - start) * (rank - below) / (count - below)


def test_counts_are_those_of_the_ledger() -> None:
    found = page(count_of([0.02] * 5, {"HttpError 503": 2, 'a "b"\n': 1}, dropped=4, lost=6, repeated=1))
    assert sample(found, "requests_sent_total") == 8
    outcomes = {name: sample(found, "requests_total", outcome=name) for name in ("ok", "failed", "abandoned")}
    assert outcomes == {"ok": 5, "failed": 3, "abandoned": 0}
    assert sample(found, "arrivals_dropped_total") == 4
    assert sample(found, "arrivals_lost_total") == 6
    assert sample(found, "requests_repeated_total") == 1
    assert sample(found, "errors_total", error="HttpError 503") == 2
    assert sample(found, "errors_total", error='a "b"\n') == 1
    assert sample(found, "latency_seconds_count") == 5
    assert sample(found, "latency_seconds_bucket", le="0.0175") == 0
    assert sample(found, "latency_seconds_bucket", le="0.0225") == 5
    assert sample(found, "latency_seconds_bucket", le="+Inf") == 5


def test_what_is_not_measured_is_not_reported() -> None:
    found = page(count_of([0.02]))
    assert not [name for name, _ in found if "response_time" in name or "ttft" in name or "verdict" in name]
    assert sample(found, "schedule_lag_seconds_count") == 0  # always measured: none was late yet


def test_a_wave_that_is_over_has_its_verdict_and_findings() -> None:
    late = Finding("schedule_lag", "invalid", "9 ms", "5 ms", "Less.")
    verdict = Verdict((late, late, Finding("too_few_samples", "warning", "1", "2", "More.")))
    found = samples(exposition(metrics_of([figures(count_of([1.0]), verdict=verdict)])).decode())
    assert sample(found, "verdict", verdict="INVALID") == 1
    assert sample(found, "verdict", verdict="VALID") == 0
    assert sample(found, "exit_code") == 3
    assert sample(found, "finding", code="schedule_lag", severity="invalid") == 1
    assert sample(found, "waves_total", verdict="INVALID") == 1
    assert sample(found, "wave_running") == 0


def test_only_so_many_errors_have_a_series_and_those_that_came_first_keep_it() -> None:
    names = {f"E{number}": 1 for number in range(MOST_ERRORS + 20)}
    first = page(count_of([], {OTHER: 3, **names}))
    assert sample(first, "errors_total", error="E0") == 1
    assert sample(first, "errors_total", error=OTHER) == 3 + 20
    assert sum(1 for name, _ in first if name == "benchmark_errors_total") == MOST_ERRORS + 1


def test_labels_and_users_values_are_reported_as_they_are() -> None:
    count = count_of([0.02])
    count.named.labels['a "b"\n\\'].failed = 2
    count.named.labels["b"].ok = 1
    count.named.labels["b"].times["latency"].update(Histogram.of([20_000_000]).counts)
    count.named.metrics["hits"].merge(ValueCounts(3, -1.5, -1.0, 0.0))
    found = page(count)
    assert sample(found, "label_requests_total", label='a "b"\n\\', outcome="failed") == 2
    assert sample(found, "label_requests_total", label="b", outcome="ok") == 1
    assert sample(found, "label_latency_seconds_bucket", label="b", le="0.02") in (0, 1)  # its bucket is on the edge
    assert sample(found, "label_latency_seconds_bucket", label="b", le="0.03") == 1
    assert sample(found, "user_metric_count", metric="hits") == 3
    assert sample(found, "user_metric_sum", metric="hits") == -1.5


COUNTS = st.lists(
    st.tuples(TIMES, st.dictionaries(st.sampled_from([f"E{n}" for n in range(90)]), st.integers(1, 9), max_size=80)),
    min_size=2,
    max_size=4,
)


@given(COUNTS)
def test_no_counter_goes_down_as_more_comes(parts: list[tuple[list[float], dict[str, int]]]) -> None:
    total, before = Count(), dict[tuple[str, str], float]()
    for seconds, failed in parts:
        total = total.with_wave(count_of(seconds, failed))
        now = dict(counters(metrics_of([figures(total)])))
        assert all(now[key] >= value for key, value in before.items())
        before = now
    assert sum(value for (name, _), value in before.items() if name == "errors") == total.ledger.failed


def counters(metrics: Iterable[Metric]) -> Iterator[tuple[tuple[str, str], float]]:
    """Whatever Prometheus takes the growth of, by name and labels."""
    for metric in metrics:
        for point in metric.points:
            if isinstance(point.value, Buckets):
                yield from (((metric.name, str(edge)), count) for edge, count in point.value.cumulative())
                yield (metric.name, "sum"), point.value.total
            elif metric.kind == "counter":
                yield (metric.name, str(point.labels)), point.value


def test_an_endpoint_is_called_by_its_name_or_file() -> None:
    assert endpoint_of(open_plan(factories_file="a/b.py")) == "b.py"
    assert endpoint_of(open_plan(factories_file="a/b.py", endpoint_name="my-endpoint")) == "my-endpoint"
    assert endpoint_of(open_plan(url="http://h:1/x")) == "http://h:1/x"
    settings = {"URL": "http://h:1", "BASE_PATH": "/v1", "API": "chat"}
    assert endpoint_of(open_plan(factories_file="shipped.py", factory_settings=settings)) == "http://h:1/v1"
    settings = {"SERVER": "http://h:1", "PATH": "/infer", "METHOD": "GET"}
    assert endpoint_of(open_plan(factories_file="shipped.py", factory_settings=settings)) == "http://h:1/infer"


def test_runs_stand_beside_each_other_and_each_gauge_is_of_its_own() -> None:
    exporter = Exporter()
    for endpoint, rate in (("a.py", 1.0), ("b.py", 2.0)):
        known = exporter.known("ab", endpoint)
        exporter.take(replace(known, count=count_of([0.1]), now=Now(sent_rate=rate, running=True), verdicts=Counter()))
    rates = {point.labels["endpoint"]: point.value for point in metric(exporter, "sent_rate").points}
    assert rates == {"a.py": 1.0, "b.py": 2.0}


def metric(exporter: Exporter, name: str) -> Metric:
    return next(each for each in exporter.metrics if each.name == name)


def test_the_waves_of_a_run_are_added_up() -> None:
    exporter, sent = Exporter(), wave([[0.02] * 10] * 3)
    for _ in range(2):
        exporter.follow(sent.plan, "search").finish(sent)
    found = samples(exposition(exporter.metrics).decode())
    assert sample(found, "requests_sent_total") == 2 * sent.ledger.sent == 60
    assert sample(found, "waves_total", verdict="VALID") == 2


def test_sessions_are_counted_where_there_are_any() -> None:
    ledger = Ledger(
        sent=30, ok=29, failed=1, later_turns=20, sessions_completed=7, sessions_failed=1, sessions_raised=1
    )
    (with_sessions,), (without,) = (
        [Figures({}, Count(ledger=each), Now())] for each in (ledger, Ledger(sent=30, ok=30))
    )
    fields = {
        (metric.name, point.labels.get("ended", "")): point.value
        for metric in metrics_of([with_sessions])
        for point in metric.points
        if metric.name.startswith("sessions")
    }
    assert fields == {
        ("sessions.started", ""): 10,
        ("sessions", "completed"): 7,
        ("sessions", "failed"): 1,
        ("sessions", "raised"): 1,
        ("sessions.open", ""): 1,
    }
    assert not any(metric.name.startswith("sessions") for metric in metrics_of([without]))
