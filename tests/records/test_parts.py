"""Records that are read part by part are the records of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from inference_benchmarker.records.columns import ROW_KEY, Records
from inference_benchmarker.records.record import RequestRecord
from tests.parts import in_parts


def _records(arrivals: int) -> Records:
    rows = []
    for index in range(arrivals):
        for attempt in range(1 + (index % 5 == 3)):
            due = 1000 * index + 10 * attempt
            rows.append(
                RequestRecord(
                    index=index,
                    attempt=attempt,
                    worker=index % 2,
                    due=due,
                    sent=due + 1,
                    done=due + 9,
                    outcome="ok",
                    label="",
                    build_ns=0,
                )
            )
    return Records.of(rows)


def test_parts_are_the_whole() -> None:
    whole = _records(50)
    parts = in_parts(whole, 7)
    assert len(parts) == len(whole)
    assert list(parts) == list(whole)
    found = list(parts.parts(*ROW_KEY, "due"))
    assert len(found) > 5
    assert np.concatenate([part.arrived for part in found]).tolist() == whole.arrived.tolist()
    assert np.concatenate([part.lasts for part in found]).tolist() == whole.lasts.tolist()


@pytest.mark.parametrize(("first", "stop"), [(0, 60), (3, 20), (8, 9), (5, 5), (40, 99), (-3, 4)])
def test_a_stretch_of_parts_is_that_of_the_whole(first: int, stop: int) -> None:
    whole = _records(50)
    found = in_parts(whole, 7).between(first, stop).since(300)
    assert list(found) == list(whole.between(max(first, 0), min(stop, len(whole))).since(300))
    assert len(found) == len(list(found))
    again = found.between(2, 6)
    assert list(again) == list(whole.between(max(first, 0), min(stop, len(whole))).since(300))[2:6]


def test_a_part_has_the_columns_that_were_named_alone() -> None:
    part = next(in_parts(_records(9)).parts("due"))
    with pytest.raises(KeyError):
        part.int("sent")


def test_no_records_are_no_parts() -> None:
    nothing = Records.of([])
    assert list(nothing.parts()) == list(in_parts(nothing).parts()) == []
