"""Step scaling by tables: no clock, no endpoint."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.embedded.scaling.step_scaling import CHANGE, EXACT, PERCENT, Step, Stepping, StepScaling
from inference_benchmarker.embedded.scaling.target_tracking import AlarmState, MetricAlarm, Scaling

if TYPE_CHECKING:
    from inference_benchmarker.embedded.scaling.target_tracking import IfMissing

STEPS = (Step(-inf, -10, -30), Step(-10, 0, -10), Step(0, 10, 10), Step(10, inf, 50))


def policy(kind: str = PERCENT, steps: tuple[Step, ...] = STEPS, magnitude: int = 1) -> StepScaling:
    """One whose alarms are at 100 and at 50, of 3 and of 2 datapoints."""
    made = StepScaling(Stepping(kind, steps, magnitude, cooldown_ns=300))
    made.watch(MetricAlarm(100, 3, above=True))
    made.watch(MetricAlarm(50, 2, above=False))
    return made


def see(rule: StepScaling, *values: float) -> None:
    for value in values:
        for alarm in (rule.high, rule.low):
            assert alarm is not None
            alarm.observe(value)


@pytest.mark.parametrize(
    ("value", "count", "expected"),
    [
        (101, 1, 2),  # 10% are less than one: one
        (109.9, 19, 20),  # 1.9 are 1
        (110, 10, 15),  # a step has its lower bound above the threshold
        (500, 7, 10),  # 3.5 are 3
        (49, 30, 27),
        (40, 10, 7),  # and its upper one below
        (40.1, 10, 9),
        (0, 19, 14),  # 5.7 are 5
        (0, 2, 1),
    ],
)
def test_percents_become_instances_as_aws_rounds_them(value: float, count: int, expected: int) -> None:
    rule = policy()
    see(rule, value, value, value)
    decision = Scaling(1, 50).decide([rule], count, 0)
    assert decision is not None
    assert decision.count == expected


def test_other_adjustments_and_the_least_change() -> None:
    rule = policy(magnitude=4)
    see(rule, 105, 105, 105)
    assert rule.high is not None
    assert rule.wanted(rule.high, 10) == 14
    for kind, expected in ((CHANGE, 13), (EXACT, 3)):
        rule = policy(kind, (Step(0, inf, 3),))
        see(rule, 120, 120, 120)
        assert rule.high is not None
        assert rule.wanted(rule.high, 10) == expected
        assert rule.low is not None
        rule.low.observe(0)
        assert rule.wanted(rule.low, 10) == 10  # there is no step below


def test_in_a_cooldown_only_more_than_was_just_added_is_added() -> None:
    rule, scaling = policy(), Scaling(1, 50)
    see(rule, 105, 105, 105)
    scaling.completed(rule, 10, 11, 0)
    assert scaling.decide([rule], 11, 299) is None
    see(rule, 200)
    decision = scaling.decide([rule], 11, 299)
    assert decision is not None
    assert decision.count == 15  # 10 and the 5 that 50% of 11 are
    assert scaling.decide([rule], 11, 300) is not None


def test_a_policy_without_an_alarm_wants_nothing() -> None:
    rule = policy()
    see(rule, 200, 200, 200)
    assert rule.high is not None
    rule.forget(rule.high)
    assert Scaling(1, 50).decide([rule], 10, 0) is None


@pytest.mark.parametrize(
    ("missing", "expected"),
    [("missing", "INSUFFICIENT_DATA"), ("breaching", "ALARM"), ("notBreaching", "OK")],
)
def test_a_missing_datapoint_is_what_the_alarm_says(missing: IfMissing, expected: str) -> None:
    alarm = MetricAlarm(50, 3, above=False, if_missing=missing)
    for _ in range(3):
        alarm.observe(None)
    assert alarm.state is AlarmState(expected)
    inclusive = MetricAlarm(50, 1, above=False, inclusive=True)
    inclusive.observe(50)
    assert inclusive.state is AlarmState.ALARM
