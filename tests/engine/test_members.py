"""The workers as the primary knows them: why a wave cannot start with them, and what each may have in flight."""

from __future__ import annotations

import pytest

from inference_benchmarker import Bounds, OpenLoop, WavePlan
from inference_benchmarker.engine.primary.members import Member, Members, caps, problems, unarmed


def loaded(payloads: int | None = 3, descriptors: int = 1000) -> Member:
    return Member(ready=True, payloads=payloads, descriptors=descriptors)


def unloaded(message: str) -> Member:
    return Member(ready=True, error={"message": message, "hint": ""})


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([loaded(), loaded()], []),
        ([loaded(None), loaded(None)], []),
        ([unloaded("no file"), unloaded("no file")], ["no file"]),
        ([unloaded("no file"), unloaded("no memory"), loaded()], ["no file", "no memory"]),
        ([loaded(), Member(over=True)], ["Worker 1 ended before it was ready."]),
        ([loaded(3), loaded(4)], ["payload_factory returned lists of different lengths in different workers: 3, 4."]),
    ],
)
def test_each_reason_not_to_start_is_reported_once(members: list[Member], expected: list[str]) -> None:
    assert [problem["message"] for problem in problems(members)] == expected


def test_whoever_did_not_acknowledge_the_start_is_named() -> None:
    members = Members(3, lambda _: None)
    members[0].armed = members[2].armed = True
    assert [problem["message"] for problem in unarmed(members)] == [
        "Worker 1 did not acknowledge the start, so no load was sent."
    ]
    members.lose(2)  # which is the cause, whatever the others would still have said
    assert [problem["message"] for problem in unarmed(members)] == [
        "Worker 2 ended before it acknowledged the start, so no load was sent."
    ]


@pytest.mark.parametrize(
    ("most", "descriptors", "allowed"),
    [
        (None, 100_000, [3334, 3333, 3333]),
        (None, 50, [50, 50, 50]),
        (7, 100_000, [3, 2, 2]),
        (7, 1, [3, 2, 2]),  # who asks for a number gets it, or hears why not
    ],
)
def test_what_may_be_in_flight_is_shared_out(most: int | None, descriptors: int, allowed: list[int]) -> None:
    plan = WavePlan(OpenLoop(1), Bounds(1), workers=3, max_in_flight=most)  # type: ignore[arg-type]  # as in notebooks
    assert caps(plan, [loaded(descriptors=descriptors)] * 3) == allowed
