"""When the load was over: gauges and rates are of the time before, whatever late answers take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference_benchmarker.facts.load_end import load_end_ns
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.words.units import NS
from tests.counted import counted
from tests.waves import MS, closed_plan, observe, on_time, open_plan

PLAN = open_plan("20", "8")


def late(number: int, seconds: float) -> list[RequestRecord]:
    """The wave whose last requests take so long, the others 20 ms."""
    records = sorted(on_time(PLAN), key=lambda each: each.index)
    first = len(records) - number
    return [*records[:first], *(each._replace(done=each.sent + int(seconds * NS)) for each in records[first:])]


def spread(every: int, seconds: float) -> list[RequestRecord]:
    """The wave of which each so many-th request takes so long, the others 20 ms."""
    slow = late(160, seconds)
    return [slow[at] if at % every == 0 else each for at, each in enumerate(late(0, 0))]


@pytest.mark.parametrize(
    ("records", "end_s"),
    [
        (late(1, 30), 8),
        (late(8, 30), 8),
        (late(40, 30), 8),
        (late(79, 30), 8),
        (spread(10, 15), 8),
        (spread(3, 20), 8),
        (late(160, 6), None),  # a burst: the server works on it mostly after the last arrival
        (late(160, 60), None),
        ([each._replace(done=each.sent + each.sent // 2) for each in late(0, 0)], 8),  # a queue: as busy as before
        (late(1, 0.9), None),
        (late(0, 0), None),
        (late(160, 12)[:-2] + late(2, 40)[-2:], 20),
    ],
)
def test_the_load_is_over_with_the_last_arrival_but_for_a_burst(
    records: list[RequestRecord], end_s: float | None
) -> None:
    found = load_end_ns(observe(PLAN, records))
    assert found == (None if end_s is None else pytest.approx(end_s * NS, abs=50 * MS))


def test_of_counts_it_is_known_to_the_second() -> None:
    for records, end_ns in ((late(40, 30), 8 * NS), (spread(3, 20), 8 * NS), (late(160, 30), None)):
        assert load_end_ns(replace(observe(PLAN, records), counts=counted(records))) == end_ns


def test_a_wave_that_was_stopped_ends_its_load_then() -> None:
    records = [each for each in late(0, 0) if each.sent < 3 * NS]
    records[-1] = records[-1]._replace(done=33 * NS)
    assert load_end_ns(observe(PLAN, records, stopped_at=3 * NS)) == pytest.approx(3 * NS, abs=50 * MS)


@pytest.mark.parametrize(("rounds", "end_s"), [(1, None), (2, None), (3, 10)])
def test_users_who_send_all_at_once_are_a_burst(rounds: int, end_s: float | None) -> None:
    """Ten users, each of whose requests takes 5 s."""
    sent = [round_ * 5 * NS + user * MS for round_ in range(rounds) for user in range(10)]
    records = [RequestRecord(number, 0, at, at, at + 5 * NS) for number, at in enumerate(sent)]
    found = load_end_ns(observe(closed_plan(10, None, len(records)), records))
    assert found == (None if end_s is None else pytest.approx(end_s * NS, abs=50 * MS))


def test_a_later_turn_of_a_session_is_load() -> None:
    first = late(0, 0)
    turn = first[-1]._replace(index=len(first), due=20 * NS, sent=20 * NS, done=60 * NS)
    assert load_end_ns(observe(PLAN, [*first, turn])) == pytest.approx(20 * NS, abs=50 * MS)


def test_a_later_turn_of_the_warm_up_s_sessions_is_load() -> None:
    records = late(8, 30)
    warm = records[0]._replace(index=-1, due=-NS, sent=-NS, done=-NS // 2)
    before = observe(PLAN, [warm, *records])
    turn = warm._replace(index=-2, due=20 * NS, sent=20 * NS, done=21 * NS)
    during = observe(PLAN, [warm, turn, *records])
    assert load_end_ns(before) == 8 * NS
    assert load_end_ns(during) == pytest.approx(20 * NS, abs=50 * MS)
    assert load_end_ns(replace(before, counts=counted([warm, *records]))) == 8 * NS
    assert load_end_ns(replace(during, counts=counted([warm, turn, *records]))) == 21 * NS  # to the second
