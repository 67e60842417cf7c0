"""The room that a plan's records take on a disk."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.disk_space import Room, room
from inference_benchmarker.plan.load import Bounds, OpenLoop
from tests.waves import closed_plan, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.plan.load import Arrivals
    from inference_benchmarker.plan.plan import WavePlan


@pytest.mark.parametrize(
    ("plan", "requests"),
    [
        (open_plan("100", "60"), 6_000),
        (open_plan("100", "60", 50), 50),
        (open_plan("100", None, 70), 70),
        (closed_plan(8, None, 90), 90),
    ],
    ids=["a time", "whichever comes first", "a number", "a closed loop's number"],
)
def test_what_the_plan_sends_for_sure_is_needed_for_sure(plan: WavePlan, requests: int) -> None:
    assert room(plan) == Room(requests, 53 * requests, 73 * requests)


def test_what_is_drawn_may_be_fewer() -> None:
    arrivals: Arrivals = "poisson"
    plan = replace(open_plan(), load=OpenLoop(Decimal(100), arrivals, ()), bounds=Bounds(Decimal(10_000), None))
    found = room(plan)
    assert found is not None
    assert 0.98e6 * 53 < found.least < 1e6 * 53 < 1e6 * 73 < found.likely < 1.02e6 * 73


def test_a_closed_loop_that_its_time_may_end_sooner_needs_nothing_for_sure() -> None:
    assert room(closed_plan(8, "10", 90)) == Room(90, 0, 73 * 90)


def test_counts_take_room_by_the_second_and_not_by_the_request() -> None:
    few, many = (room(replace(open_plan(rate, "60"), records="none", workers=2)) for rate in ("1", "10000"))
    assert few is not None
    assert many is not None
    assert (few.likely, few.least, many.least) == (many.likely, 0, 0)
    assert many.likely < 73 * many.requests / 10
    assert room(replace(closed_plan(8, "60"), records="none")) is None


def test_a_wave_without_a_known_number_has_no_room_to_reckon() -> None:
    assert room(closed_plan(8, "10")) is None
    assert room(replace(open_plan(), load=OpenLoop(Decimal(100), steered=True))) is None
