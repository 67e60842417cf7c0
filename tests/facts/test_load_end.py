"""When the load was over: gauges and rates are of the time before, whatever a few late answers take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.facts.load_end import load_end_ns
from inference_benchmarker.words.units import NS
from tests.counted import counted
from tests.waves import MS, observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.records.record import RequestRecord

PLAN = open_plan("20", "8")


def late(number: int, seconds: float) -> list[RequestRecord]:
    """The wave whose last requests take so long, the others 20 ms."""
    records = sorted(on_time(PLAN), key=lambda each: each.index)
    first = len(records) - number
    return [*records[:first], *(each._replace(done=each.sent + int(seconds * NS)) for each in records[first:])]


@pytest.mark.parametrize(
    ("records", "end_s"),
    [
        (late(1, 30), 8),
        (late(8, 30), 8),
        (late(40, 30), None),  # a queue, or answers that are long: load
        (late(160, 60), None),
        (late(1, 0.9), None),
        (late(0, 0), None),
        (late(160, 12)[:-2] + late(2, 40)[-2:], 19.6),
    ],
)
def test_the_load_is_over_when_all_but_a_few_requests_are(records: list[RequestRecord], end_s: float | None) -> None:
    found = load_end_ns(observe(PLAN, records))
    assert found == (None if end_s is None else pytest.approx(end_s * NS, abs=50 * MS))


def test_of_counts_it_is_known_to_the_second() -> None:
    for records, end_ns in ((late(1, 30), 8 * NS), (late(40, 30), None)):
        assert load_end_ns(replace(observe(PLAN, records), counts=counted(records))) == end_ns
