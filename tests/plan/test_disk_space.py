"""The room that a plan's records take on a disk."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.disk_space import Room, room
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.recorded import Conversations, Recorded
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


def conversations(turns: str = "", recorded: Recorded | None = None) -> WavePlan:
    file = Path("factories/conversations/factories_by_url.py")
    talks = None if recorded is None else Conversations(Path("talks.json"), recorded)
    settings = {"TURNS": turns} if turns else {}
    return replace(open_plan("100", "60"), factories_file=file, factory_settings=settings, conversations=talks)


@pytest.mark.parametrize(
    ("plan", "turns"),
    [
        (conversations("5"), 5),
        (conversations("uniform:3..8"), 5.5),
        (conversations("geometric:4"), 4),
        (conversations(recorded=Recorded("ShareGPT", 1, 4, 10)), 2.5),
    ],
)
def test_each_turn_of_a_session_takes_room_and_only_the_first_is_sure(plan: WavePlan, turns: float) -> None:
    assert room(plan) == Room(int(6_000 * turns), 64 * 6_000, int(84 * 6_000 * turns))


def test_another_files_setting_of_that_name_says_nothing_of_turns() -> None:
    plan = replace(conversations("5"), factories_file=Path("mine/factories_by_url.py"))
    assert room(plan) == Room(6_000, 53 * 6_000, 73 * 6_000)


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
