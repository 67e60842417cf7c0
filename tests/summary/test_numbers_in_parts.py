"""The numbers of a wave are the same in whatever parts its records come."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.slo import RequestLimit
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.parts import RecordParts
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.summary.statistics.grouped_histogram import GroupedHistogram, counts_of
from inference_benchmarker.summary.statistics.streaming_histogram import PRECISION
from inference_benchmarker.summary.summarising import summarise
from tests.parts import in_parts
from tests.waves import MS, closed_plan, observe, open_plan, staged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Int64
    from inference_benchmarker.records.parts import InParts

LIMITS = tuple(map(RequestLimit.parse, ("latency<100ms", "ttft<50ms", "itl<=20ms")))
LABELS = st.sampled_from(("", "", "a", "b", "c"))
USAGE = st.none() | st.integers(0, 9)
METRICS = st.none() | st.dictionaries(st.sampled_from("xy"), st.floats(-9, 9), min_size=1)
TIMES = st.integers(0, 300).map(lambda ms: ms * MS)


@st.composite
def requests(draw: st.DrawFn, due: int, *, streams: bool) -> RequestRecord:
    """One request that was due then, of any end."""
    lag, build, took = draw(st.integers(0, 9 * MS)), draw(st.sampled_from((0, MS))), draw(TIMES)
    outcome = draw(st.sampled_from(("ok", "ok", "ok", "failed", "abandoned")))
    sent = due + lag + build
    error = draw(st.sampled_from(("E", "F", "G"))) if outcome == "failed" else None
    reason = draw(st.sampled_from((None, "stop", "length"))) if outcome == "ok" else None
    record = RequestRecord(
        0, 0, due, sent, sent + took, outcome, draw(LABELS), error, build, finish_reason=reason, chunks=None
    )
    record = record._replace(metrics=draw(METRICS))
    if not streams or not draw(st.booleans()):
        return record
    gaps = draw(st.none() | st.lists(st.integers(0, 50), max_size=4))
    record = record._replace(tokens_in=draw(USAGE), tokens_out=draw(USAGE))
    if gaps is None:
        return record._replace(chunks=0, gaps=())
    first = sent + min(took, 5 * MS)
    last = first + sum(gaps) * MS
    done, times = max(last, sent + took), tuple(gap * 1000 for gap in gaps)
    return record._replace(done=done, first_token=first, last_token=last, chunks=len(gaps) + 1, gaps=times)


@st.composite
def waves(draw: st.DrawFn) -> WaveFacts:
    """A wave of a few arrivals, some of which were tried again; a warm-up before it."""
    open_loop, streams, retries = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    records = []
    for index in range(-draw(st.integers(0, 4)), draw(st.integers(1, 16))):
        due = index * 250 * MS
        for attempt in range(draw(st.integers(1, 3)) if retries else 1):
            record = draw(requests(due, streams=streams))._replace(index=index, attempt=attempt)
            records.append(record)
            due = record.done + 10 * MS
    more: dict[str, Any] = {
        "warmup_s": Decimal(1),
        "goodput": draw(st.sampled_from(((), LIMITS[:1], LIMITS))),
        "retries": Retries(Decimal(1), 2) if retries else Retries(),
    }
    if open_loop:
        plan = draw(st.sampled_from((open_plan, partial(staged, "20:1s,5:2s,10:1s"))))(**more)
    else:
        plan = closed_plan(1, draw(st.sampled_from(("4", None))), 30, **more)
    return observe(plan, records)


@given(waves(), st.integers(1, 50), st.booleans())
@settings(max_examples=20)
def test_a_wave_in_parts_has_the_numbers_of_the_whole(facts: WaveFacts, rows: int, recoded: bool) -> None:
    records, warmup = (_parts(each, rows, recoded=recoded) for each in (facts.records, facts.warmup))
    found, whole = summarise(replace(facts, records=records, warmup=warmup)), summarise(facts)
    assert found == whole
    for name in ("latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl", "tpot"):
        assert _values(getattr(found, name)) == _values(getattr(whole, name))
    for metric, distribution in whole.metrics.items():
        assert _values(found.metrics[metric]) == _values(distribution)
    for row, other in zip(found.labels, whole.labels, strict=True):
        assert _values(row.latency) == _values(other.latency)


def _values(distribution: Distribution | None) -> list[float] | None:
    return None if distribution is None else distribution.values.tolist()


def _parts(records: InParts, rows: int, *, recoded: bool) -> Any:
    parts = in_parts(cast("Records", records), rows)
    return RecordParts(_Recoded(parts)) if recoded else parts


class _Recoded:
    """Parts whose dictionaries number the same names differently, as those of a file that is not ours."""

    def __init__(self, parts: RecordParts) -> None:
        self.metrics = parts.metrics
        self._parts = list(parts.parts())
        self.lengths: Sequence[int] = list(map(len, self._parts))

    def read(self, part: int, columns: Sequence[str]) -> Records:
        table = self._parts[part].table.select(list(columns) or self._parts[part].table.column_names)
        for place, name in enumerate(table.column_names):
            if name in ("label", "outcome", "error", "finish_reason"):
                table = table.set_column(place, name, table.column(name).cast("string").dictionary_encode())
        return Records(table)


GROUPS = st.lists(st.lists(st.tuples(st.integers(0, 4), st.floats(1e-9, 1e5) | st.just(0.0)), max_size=20), max_size=6)


@given(
    GROUPS,
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e5)), max_size=4),
    st.integers(0, 40),
)
def test_samples_of_groups_are_each_its_own(
    parts: list[list[tuple[int, float]]], aged: list[tuple[int, float]], most_held: int
) -> None:
    tallies = GroupedHistogram(most_held)
    for part in parts:
        tallies.add(*_columns(part))
    measured = [pair for part in parts for pair in part]
    for group, found in enumerate(tallies.distributions(5, *_columns(aged))):
        whole = Distribution.of(*([value for each, value in pairs if each == group] for pairs in (measured, aged)))
        if found is None or whole is None:
            assert found is whole
        elif len(measured) <= most_held:
            assert (found, _values(found)) == (whole, _values(whole))
        else:
            _is_near(found, whole)


@given(st.lists(st.tuples(st.integers(0, 1 << 20) | st.integers(0, 3), st.integers(0, 255)), min_size=1))
def test_keys_are_counted_as_if_they_were_sorted(pairs: list[tuple[int, int]]) -> None:
    keys = np.array([group << 8 | bucket for group, bucket in pairs], np.int64)
    for found, expected in zip(counts_of(keys, 8), np.unique(keys, return_counts=True), strict=True):
        assert found.tolist() == expected.tolist()


def _columns(pairs: list[tuple[int, float]]) -> tuple[Int64, Floats]:
    return np.array([group for group, _ in pairs], np.int64), np.array([value for _, value in pairs], np.float64)


def _is_near(found: Distribution, whole: Distribution) -> None:
    assert (found.count, found.minimum, found.maximum) == (whole.count, whole.minimum, whole.maximum)
    assert found.mean == pytest.approx(whole.mean, rel=1e-12)
    assert found.stdev == pytest.approx(whole.stdev, rel=1e-6, abs=1e-6)
    for percent in (0, 1, 50, 90, 100):
        value = whole.percentile(percent)
        assert abs(found.percentile(percent) - value) <= max(found.precision * value, 1e-9)
        assert found.is_lower_bound(found.percentile(percent)) >= whole.is_lower_bound(value)


def test_buckets_grow_wider_where_there_are_too_many_and_it_is_reported() -> None:
    random = np.random.default_rng(1)
    groups, values = random.integers(0, 10, 30_000), random.lognormal(-4, 1, 30_000)
    tallies = GroupedHistogram(most_held=0, room=10_000)
    for start in range(0, 30_000, 1000):
        tallies.add(groups[start : start + 1000], values[start : start + 1000])
    found = tallies.distributions(10, np.zeros(0, np.int64), np.zeros(0))
    precisions = {each.precision for each in found if each is not None}
    assert len(precisions) == 1
    assert PRECISION < precisions.pop() < 1 / 100
    for group, each in enumerate(found):
        assert each is not None
        whole = Distribution.of(values[groups == group])
        assert whole is not None
        _is_near(each, whole)
