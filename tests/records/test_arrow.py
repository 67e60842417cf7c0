"""Columns by their buffers are what pyarrow's own conversions make of the same values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.records import arrow

VALUES = st.lists(st.tuples(st.integers(-(1 << 40), 1 << 40), st.booleans()), max_size=40)


@settings(deadline=None)  # the first conversion of pyarrow's own imports pandas
@given(VALUES, st.integers(0, 9))
def test_numbers_and_nulls_go_both_ways_wherever_a_slice_begins(values: list[tuple[int, bool]], skipped: int) -> None:
    data = np.array([value for value, _ in values], np.int64)
    null = np.array([is_null for _, is_null in values], bool)
    made, theirs = arrow.column(data, null), pa.array(data, mask=null)
    made.validate(full=True)
    assert made.equals(theirs)
    for column in (made[skipped:], pa.chunked_array([theirs[skipped:], theirs])):
        assert arrow.numbers(column, null=-1).tolist() == column.fill_null(-1).to_pylist()
        assert arrow.present(column).tolist() == [value is not None for value in column.to_pylist()]


@given(st.lists(st.booleans(), max_size=40))
def test_truths(values: list[bool]) -> None:
    assert arrow.truths(np.array(values, bool)).to_pylist() == values


@given(st.lists(st.text(), max_size=10))
def test_texts(values: list[str]) -> None:
    made = arrow.texts(values)
    made.validate(full=True)
    assert made.to_pylist() == values


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.uint32, np.int64])
def test_every_type_of_ours_and_no_rows(dtype: type) -> None:
    assert arrow.numbers(arrow.column(np.arange(3, dtype=dtype))).dtype == dtype
    assert len(arrow.numbers(pa.chunked_array([], pa.from_numpy_dtype(dtype)))) == 0
