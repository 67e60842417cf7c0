"""A search whose endpoint got slower tells both rates, and counts what came before for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.data.decoded import encoded
from server_capacity.experiments.capacity.result import content
from server_capacity.results.codec import check_capacity
from server_capacity.results.text.capacity import to_text
from server_capacity.search.answer import Answer, Interval
from server_capacity.search.slow_down import SLOWER
from server_capacity.search.stretch import Count, Slice, Stretch
from tests.explorations import FOUND, explored, question

if TYPE_CHECKING:
    from server_capacity.experiments.measurements.evidence import SearchEvidence

LASTING = replace(FOUND, rate=71.0, interval=Interval(68.0, 75.0))


def slowed(*, in_users: bool = False) -> SearchEvidence:
    """120/s went well at 10 s, and was over at 90 s; then 60/s went well, though slower."""
    seen = explored()
    stretches = [_at(0, 10, 120, 0, 3), _at(1, 90, 120, 900, 400), _at(2, 100, 60, 0, 2)]
    seen.rows = [
        replace(row, counted=replace(row.counted, stretch=stretch))
        for row, stretch in zip(seen.rows, stretches, strict=True)
    ]
    seen.leave_out_slow_down(replace(question(), in_users=in_users))
    return seen


def _at(number: int, start_s: float, rate: float, over: int, in_flight: int) -> Stretch:
    counts = Count(1000, over), Count(1000, 0)
    part = Slice(start_s, start_s + 8.0, 1000, 1000, counts, 900.0 if over else 20.0 if start_s < 90 else 60.0)
    return Stretch(number, rate, start_s, start_s + 8.0, (part,), "grow", in_flight=in_flight)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (LASTING, "The endpoint slowed down over time: 179/s in the first 18 s, 71/s from 1 min 40 s on."),
        (
            Answer("cannot_tell", reason=f"{SLOWER}: --time 6m"),
            "The endpoint slowed down over time: 179/s in the first 18 s.",
        ),
    ],
)
def test_both_rates_are_reported_and_the_first_is_no_answer(answer: Answer, expected: str) -> None:
    seen = slowed()
    seen.early = replace(FOUND, rate=179.0, interval=Interval(170.0, 185.0))
    data = content(question(), seen, answer, [])
    check_capacity(encoded(data))

    lines = [line.strip() for line in to_text(data).splitlines()]
    assert expected in lines
    before, after = "After 10 s at 120/s, 20 ms on average, 0% over", "after 1 min 40 s at 60.0/s, 60 ms on average"
    assert f"{before}; {after}, 0% over." in lines
    assert f"✗ Step 1 was discarded because {SLOWER}." in lines
    assert [row.void for row in data.stretches or []] == [SLOWER, "", ""]
    assert [(point.rate, point.seconds) for point in data.curve or []] == [(60, 8), (120, 8)]
    assert (data.rate, data.exit_code) == (answer.rate, 1)


def test_what_was_known_before_is_kept_when_it_gets_slower_again() -> None:
    seen = slowed()
    first, early = seen.slower, seen.early
    assert early is not None
    seen.leave_out_slow_down(question())
    assert (seen.slower, seen.early) == (first, early)
    assert [stretch.void for stretch in seen.stretches] == [SLOWER, "", ""]


def test_users_wait_for_answers_and_so_their_rate_tells_nothing() -> None:
    assert slowed(in_users=True).slower is None
