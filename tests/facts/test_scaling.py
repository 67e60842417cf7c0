"""What became of the instances: tables of counts and events, and what must hold for any of them."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.facts.instances import INFERRED, Count, Followed, ScalingEvent, gathered, renewed_instances
from inference_benchmarker.facts.scaling import Change, Rise, Scaling, rises, scalings
from inference_benchmarker.words.units import NS
from tests.waves import closed_plan, observe, on_time, open_plan, staged

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

T0 = 1_700_000_000
PLAN = staged("1:30s, spike=4:570s")


def counts(*rows: tuple[float, float, float | None]) -> tuple[Count, ...]:
    return tuple(Count(T0 + at, current, desired, "InService") for at, current, desired in rows)


def scaling(rows: tuple[Count, ...], *events: ScalingEvent, plan: WavePlan = PLAN) -> Scaling:
    facts = observe(plan, on_time(plan)[:5])
    assert facts.window.start_unix_ns == T0 * NS
    (found,) = scalings(replace(facts, instances=(Followed("e/v", "DescribeEndpoint", rows, events),)))
    return found


def alarm(at: float) -> ScalingEvent:
    return ScalingEvent(T0 + at, "alarm", "alarm fired")


def asked(at: float, number: float, done: float | None = None) -> ScalingEvent:
    return ScalingEvent(T0 + at, "asked", "asked", number, None if done is None else T0 + done)


GROWN = counts((-2, 2, 2), (3, 2, 2), (216.5, 2, 5), (440, 2, 5), (445, 5, 5), (600, 5, 5))


@pytest.mark.parametrize(
    ("rows", "events", "expected"),
    [
        (counts((-2, 2, 2), (300, 2, 2)), [], []),
        ((), [alarm(215)], []),
        (GROWN, [], [Change(2, 5, 216.5, 445, 30, None)]),
        (GROWN, [alarm(215.2), asked(216.1, 5, 444)], [Change(2, 5, 216.1, 445, 30, 215.2)]),
        (GROWN, [alarm(215.2), asked(100, 5), asked(216.1, 4)], [Change(2, 5, 216.5, 445, 30, 215.2)]),
        (GROWN, [alarm(20)], [Change(2, 5, 216.5, 445, 0, 20)]),
        (counts((0, 2, 2), (100, 2, 4)), [], [Change(2, 4, 100, None, 30)]),
        (
            counts((0, 2, 2), (100, 2, 4), (150, 2, 6), (200, 6, 6)),
            [],
            [Change(2, 4, 100, None, 30), Change(4, 6, 150, 200, 30)],
        ),
        (
            counts((0, 1, 1), (100, 1, 2), (150, 2, 2), (400, 2, 1), (410, 1, 1)),
            [alarm(90), alarm(399)],
            [Change(1, 2, 100, 150, 30, 90), Change(2, 1, 400, 410, None, 399)],
        ),
        (counts((0, 1, None), (70, 3, None)), [asked(60, 3)], [Change(1, 3, 60, 70, 30)]),
        (counts((0, 1, None), (70, 3, None)), [], [Change(1, 3, None, 70, 30)]),
    ],
)
def test_changes(rows: tuple[Count, ...], events: list[ScalingEvent], expected: list[Change]) -> None:
    assert list(scaling(rows, *events).changes) == expected


@pytest.mark.parametrize(
    ("rows", "path", "steady"),
    [
        (GROWN, "2 -> 5", False),
        (counts((-9, 1, 1), (-2, 2, 2), (300, 2, 3)), "2", True),
        (counts((0, 1, None), (1, 2, None), (2, 1, None)), "1 -> 2 -> 1", False),
        (counts(*((at, at % 7, None) for at in range(1, 30))), "1 -> 6 -> 0 -> 1", False),
        ((), "", True),
    ],
)
def test_path(rows: tuple[Count, ...], path: str, steady: bool) -> None:
    assert (scaling(rows).path, scaling(rows).is_steady) == (path, steady)


def test_what_was_counted_before_the_wave_is_its_state_at_the_start() -> None:
    assert [(step.at, step.current) for step in scaling(GROWN).steps] == [(0, 2), (216.5, 2), (445, 5)]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (open_plan("10"), [Rise(0.0, "10 requests/s")]),
        (open_plan("10", warmup_s=Decimal(5)), [Rise(-5.0, "10 requests/s")]),
        (closed_plan(7), [Rise(0.0, "7 requests in flight")]),
        (
            staged("5:10s, 5..50:20s, 50..5:20s, 0:5s, again=4:1s"),
            [
                Rise(0.0, "0 to 5 requests/s (stage 1)"),
                Rise(10.0, "5 to 50 requests/s (stage 2)"),
                Rise(55.0, "0 to 4 requests/s (stage again)"),
            ],
        ),
        (staged("5:10s", warmup_s=Decimal(3)), [Rise(-3.0, "0 to 5 requests/s (stage 1)")]),
    ],
)
def test_the_load_rises_where_the_plan_says_so(plan: WavePlan, expected: list[Rise]) -> None:
    assert rises(plan) == expected


def test_whatever_was_counted_its_changes_are_in_order_and_lead_from_one_number_to_the_next() -> None:
    draw = random.Random(5)
    for _ in range(200):
        desired, current, rows = 2.0, 2.0, []
        for at in sorted(draw.uniform(-5, 500) for _ in range(draw.randrange(40))):
            desired = float(draw.randrange(1, 6)) if draw.random() < 0.2 else desired
            current = desired if draw.random() < 0.3 else current
            rows.append((at, current, desired))
        events = [asked(draw.uniform(0, 500), draw.randrange(1, 6)) for _ in range(draw.randrange(5))]
        found = scaling(counts(*rows), *events, *(alarm(draw.uniform(0, 500)) for _ in range(3)))
        changes = found.changes
        assert [change.before for change in changes[1:]] == [change.after for change in changes[:-1]]
        levels = [step.desired for step in found.steps]
        assert len(changes) == sum(a != b for a, b in pairwise(levels))
        for change in changes:
            assert change.before != change.after
            assert change.asked_s is not None
            assert change.served_s is None or change.served_s >= change.asked_s
            assert change.alarm_s is None or change.alarm_s <= change.asked_s + 1
            assert change.load_rose_s is None or change.is_growth


def test_lines_lead_back_to_what_was_followed() -> None:
    followed = (
        Followed("a/b", "DescribeEndpoint", GROWN, (alarm(5), asked(6, 3, 9)), ("It was not reported.",)),
        Followed("replicas at h", "count(up)", counts((1, 1, None))),
    )
    assert gathered(line for each in followed for line in each.lines()) == followed


def test_a_later_reading_keeps_what_was_counted() -> None:
    before = Followed("a", "DescribeEndpoint", GROWN, (alarm(1),), ("old",))
    later = Followed("a", "SampleCount", (), (alarm(2),), ("new",))
    (found,) = renewed_instances([before], [later])
    assert found == Followed("a", "DescribeEndpoint", GROWN, (alarm(2),), ("new",))
    assert renewed_instances([before], []) == (before,)
    inferred = Followed("a", INFERRED, counts((1, 4, None), (2, 4, None)))
    assert renewed_instances([before], [inferred])[0].counts == GROWN
    assert renewed_instances([inferred], [before])[0].source == "DescribeEndpoint"
