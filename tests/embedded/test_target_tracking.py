"""Target tracking by tables and properties: no clock, no endpoint."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.embedded.scaling.instances import Instances
from inference_benchmarker.embedded.scaling.target_tracking import (
    IN_SHARE,
    AlarmState,
    MetricAlarm,
    Scaling,
    TargetTracking,
    Tracking,
)
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, ALARM, MISSING = AlarmState.OK, AlarmState.ALARM, AlarmState.INSUFFICIENT_DATA
MINUTE = 60 * NS


def states(alarm: MetricAlarm, values: Sequence[float | None]) -> list[AlarmState]:
    """The state after each datapoint."""
    found = []
    for value in values:
        before = alarm.state
        assert alarm.observe(value) is (alarm.state is not before)
        found.append(alarm.state)
    return found


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([101, 101, 101, 101], [MISSING, MISSING, ALARM, ALARM]),
        ([100, 101, 101, 101], [OK, OK, OK, ALARM]),
        ([101, 101, 100, 101, 101, 101], [MISSING, MISSING, OK, OK, OK, ALARM]),
        ([101, 101, 101, 100], [MISSING, MISSING, ALARM, OK]),
        ([None, None], [MISSING, MISSING]),
        ([None, 101, 101, 101], [MISSING, MISSING, MISSING, ALARM]),
        ([101, None, 101], [MISSING, MISSING, ALARM]),
        ([100, None, None, None], [OK, OK, OK, MISSING]),
        ([101, 101, 101, None, None, None], [MISSING, MISSING, ALARM, ALARM, ALARM, MISSING]),
    ],
)
def test_three_datapoints_above_the_target_set_the_alarm_off(
    values: list[float | None], expected: list[AlarmState]
) -> None:
    assert states(MetricAlarm(100, 3, above=True), values) == expected


def test_fifteen_datapoints_below_nine_tenths_set_the_low_alarm_off() -> None:
    policy = TargetTracking(Tracking(100))
    assert policy.low is not None
    assert states(policy.low, [89.9] * 15) == [MISSING] * 14 + [ALARM]
    assert states(policy.low, [90]) == [OK]
    assert states(policy.low, [0] * 15) == [OK] * 14 + [ALARM]


def tracked(values: Sequence[float], target: float = 100, **settings: object) -> TargetTracking:
    policy = TargetTracking(Tracking(target, **settings))  # type: ignore[arg-type]  # each test's own few
    for value in values:
        for alarm in policy.alarms:
            alarm.observe(value)
    return policy


@pytest.mark.parametrize(
    ("values", "count", "expected"),
    [
        ([101] * 3, 1, 2),
        ([150] * 3, 2, 3),
        ([200] * 3, 1, 2),
        ([201] * 3, 1, 3),
        ([101, 101, 300], 2, 6),
        ([1000] * 3, 1, 8),
        ([99] * 20, 3, None),
        ([101] * 2, 3, None),
        ([50] * 15, 4, 2),
        ([51] * 15, 4, 3),
        ([80] * 14 + [1], 4, None),
        ([0] * 15, 4, 1),
        ([89] * 15, 4, None),
        ([50] * 14, 4, None),
    ],
)
def test_as_many_are_asked_for_as_bring_the_metric_to_its_target(
    values: list[float], count: int, expected: int | None
) -> None:
    decision = Scaling(1, 8).decide([tracked(values)], count, 0)
    assert (decision and decision.count) == expected


@given(
    st.integers(1, 50),
    st.just(0.0) | st.floats(1e-300, 1e5),
    st.floats(1, 1e4),
    st.integers(0, 10),
    st.integers(10, 60),
)
def test_what_is_asked_for_brings_the_metric_to_its_target_within_the_bounds(
    count: int, value: float, target: float, minimum: int, maximum: int
) -> None:
    decision = Scaling(minimum, maximum).decide([tracked([value] * 15, target)], count, 0)
    if decision is None:
        assert value <= target * (1 + 1e-8)
        assert value * 1.000001 >= IN_SHARE * target or math.ceil(count * value / target) == count
        return
    assert min(count, max(1, minimum)) <= decision.count <= max(count, maximum)
    assert (decision.count >= count) == decision.alarm.above or decision.count == count
    assert count * value <= decision.wanted * target * (1 + 1e-6)
    assert decision.wanted == 0 or count * value > (decision.wanted - 1) * target * (1 - 1e-6)


def test_bounds_that_allow_no_other_number_say_what_was_wanted() -> None:
    decision = Scaling(1, 2).decide([tracked([500] * 3)], 2, 0)
    assert decision is not None
    assert (decision.wanted, decision.count) == (10, 2)


def test_in_the_cooldown_of_a_scale_out_only_what_is_more_than_it_added_is_added() -> None:
    """From 10, 2 were added; then 3 are wanted, of which those 2 are a part: 1 more."""
    scaling = Scaling(1, 40)
    scaling.completed(tracked([]), 10, 12, now_ns=0)

    def count(value: float, now_ns: int) -> int | None:
        decision = scaling.decide([tracked([value] * 3)], 12, now_ns)
        return None if decision is None else decision.count

    assert count(108, MINUTE) is None
    assert count(120, MINUTE) == 13
    assert count(108, 5 * MINUTE - 1) is None
    assert count(108, 5 * MINUTE) == 13


def test_a_scale_in_waits_for_its_cooldown_and_a_scale_out_does_not() -> None:
    scaling = Scaling(1, 40)
    scaling.completed(tracked([], in_cooldown_ns=2 * MINUTE), 10, 8, now_ns=0)
    low, high = tracked([50] * 15), tracked([150] * 3)
    assert scaling.decide([low], 8, 2 * MINUTE - 1) is None
    out = scaling.decide([high], 8, 1)
    assert out is not None
    assert out.count == 12
    scaling.completed(high, 8, 12, now_ns=1)
    assert scaling.decide([low], 12, 2) is not None


def test_a_policy_that_may_not_scale_in_has_no_low_alarm() -> None:
    policy = tracked([1] * 30, scale_in=False)
    assert policy.low is None
    assert Scaling(1, 8).decide([policy], 4, 0) is None


def test_of_more_policies_who_wants_most_is_followed_and_all_must_want_fewer() -> None:
    scaling = Scaling(1, 40)

    def count(*policies: TargetTracking) -> int | None:
        decision = scaling.decide(policies, 10, 0)
        return None if decision is None else decision.count

    assert count(tracked([150] * 3), tracked([190] * 3), tracked([10] * 15)) == 19
    assert count(tracked([50] * 15), tracked([70] * 15)) == 7
    assert count(tracked([50] * 15), tracked([95] * 15)) is None
    assert count(tracked([50] * 15), tracked([95] * 15, scale_in=False)) == 5


def test_what_is_suspended_does_not_happen() -> None:
    scaling = Scaling(1, 8)
    scaling.out_suspended = scaling.in_suspended = True
    assert scaling.decide([tracked([500] * 3)], 2, 0) is None
    assert scaling.decide([tracked([5] * 15)], 2, 0) is None


def test_instances_serve_after_their_start_and_end_at_once() -> None:
    instances = Instances(2, start_ns=100)
    assert instances.ask(5, 1000) == 1100
    assert (instances.current, instances.desired, instances.updating) == (2, 5, True)
    assert not instances.arrive(1099)
    assert instances.arrive(1100)
    assert not instances.arrive(1101)
    assert (instances.current, instances.updating) == (5, False)
    assert instances.ask(1, 1200) == 1200
    assert instances.arrive(1200)
    assert instances.current == 1


def test_asking_for_what_there_is_changes_nothing() -> None:
    instances = Instances(2, start_ns=100)
    instances.ask(2, 0)
    assert not instances.updating
    assert not instances.arrive(1000)
