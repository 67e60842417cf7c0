"""Instants in order, whatever the parts that they come in."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.records.columns import ROW_KEY, Records
from inference_benchmarker.records.ordered import ReorderBuffer, in_order, rows_before, watermarks
from inference_benchmarker.records.record import RequestRecord
from tests.parts import in_parts

ARRIVALS = st.lists(st.tuples(st.integers(0, 5), st.integers(-50, 50), st.integers(1, 3)), max_size=60)


def records_of(arrivals: list[tuple[int, int, int]]) -> Records:
    """Arrivals some time after one another, sent some time before or after, with as many attempts."""
    rows, due = [], 0
    for index, (after, late, attempts) in enumerate(arrivals):
        due += after
        for attempt in range(attempts):
            at = due + 100 * attempt
            rows.append(RequestRecord(index, index % 2, at, at + late, at + 99, attempt=attempt))
    return Records.of(rows)


@given(ARRIVALS, st.integers(1, 20))
def test_every_instant_comes_once_and_in_order(arrivals: list[tuple[int, int, int]], rows: int) -> None:
    records = records_of(arrivals)
    for name in ("sent", "done"):
        found = np.concatenate([np.zeros(0, np.int64), *in_order(in_parts(records, rows), name)])
        assert found.tolist() == np.sort(records.int(name)).tolist()
    odd = np.concatenate(
        [
            np.zeros(0, np.int64),
            *in_order(in_parts(records, rows), "sent", "worker", where=lambda part: part.int("worker") == 1),
        ]
    )
    assert odd.tolist() == np.sort(records.int("sent")[records.int("worker") == 1]).tolist()


@given(ARRIVALS, st.integers(1, 20))
def test_a_watermark_is_the_least_of_what_comes(arrivals: list[tuple[int, int, int]], rows: int) -> None:
    parts = in_parts(records_of(arrivals), rows)
    found = watermarks(parts, "sent", "done")
    least = [min(int(part.int(name).min()) for name in ("sent", "done")) for part in parts.parts()]
    assert found == [min(least[number:], default=None) for number in range(1, len(least) + 1)]


def test_hardly_more_is_carried_than_is_in_flight() -> None:
    records = records_of([(10, 5, 1)] * 1000)
    emitted = [len(values) for values in in_order(in_parts(records, 50), "sent")]
    assert all(values >= 40 for values in emitted)


def test_what_is_carried_for_long_comes_in_order_at_last() -> None:
    """A worker that fell behind the others holds up all that came after it."""
    buffer = ReorderBuffer()
    for start in range(0, 10_000, 100):
        assert not len(buffer.push(np.arange(start, start + 100)[::-1], -1))
    assert buffer.push(np.zeros(1, np.int64), None).tolist() == [0, *range(10_000)]


@given(ARRIVALS, st.integers(1, 20), st.lists(st.integers(-10, 400), max_size=9))
def test_the_rows_before_an_instant(arrivals: list[tuple[int, int, int]], rows: int, instants: list[int]) -> None:
    records = records_of(arrivals)
    found = rows_before(in_parts(records, rows), instants)
    assert found == [int(np.count_nonzero(records.arrived < instant)) for instant in instants]
    for (first, stop), (start, end) in zip(pairwise(sorted(found)), pairwise(sorted(instants)), strict=True):
        span = in_parts(records, rows).between(first, stop)
        assert all(start <= due < end for part in span.parts(*ROW_KEY, "due") for due in part.arrived)
