"""The sentence on which configuration is better for whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.case import case
from tests.mentions import mentions
from visualization.pareto.answer import Answer, answer_of, caveats, sentence
from visualization.pareto.measuring import OUTPUT, TOTAL
from visualization.pareto.points import MEDIAN, P90, Configuration, Point, Quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[float, float]


def quantity(value: float, share: float | None) -> Quantity:
    return Quantity(value) if share is None else Quantity(value, value * (1 - share), value * (1 + share))


def points(
    name: str, *rows: Row, gpus: int = 1, share: float | None = 0.01, unusable: tuple[str, ...] = ()
) -> list[Point]:
    """A point for each speed and throughput, whose intervals go so far to either side."""
    configuration = Configuration(name, (), gpus)
    return [
        Point(
            configuration,
            f"{place} in flight",
            place,
            (),
            {MEDIAN: quantity(speed, share)},
            {OUTPUT: quantity(rate, share), TOTAL: quantity(3 * rate, share)},
            100.0,
            64.0,
            (0, 10),
            unusable,
        )
        for place, (speed, rate) in enumerate(rows, 1)
    ]


STEEP, FLAT = ((20.0, 400.0), (60.0, 10.0)), ((15.0, 210.0), (100.0, 120.0))


def said(some: Sequence[Point], throughput: str = OUTPUT) -> tuple[Answer, str]:
    answer = answer_of(some, MEDIAN, throughput)
    return answer, sentence(answer, some)


def test_one_is_better_for_slow_users_and_the_other_beyond() -> None:
    answer, text = said([*points("A", *STEEP), *points("B", *FLAT)])
    # 400 - 9.75 (s - 20) = 210 - 90 / 85 (s - 15)
    crossing = (400 + 9.75 * 20 - 210 - 15 * 90 / 85) / (9.75 - 90 / 85)
    assert answer.best[0].high == pytest.approx(crossing)
    ((low, high),) = answer.open
    assert low < crossing < high
    found = mentions(text, f"slower than {crossing:.1f} tokens/s (95%: {low:.1f} to {high:.1f}), B beyond")
    assert found
    assert mentions(text, "more output tokens/s/GPU at the same median speed", "Above 60 tokens/s only B was measured")


def test_more_gpus_for_the_same_tokens_are_worse() -> None:
    both = [*points("A", *STEEP, gpus=4), *points("B", *FLAT)]
    answer, text = said(both)
    assert [each.best for each in answer.best if not each.alone] == ["B"]
    assert both[0].per_gpu[OUTPUT].value == 100
    assert mentions(text, "B is better at every speed")


def test_overlapping_intervals_decide_nothing() -> None:
    _, text = said([*points("A", (20, 100), share=0.2), *points("B", (21, 105), share=0.2)])
    assert text.startswith("Cannot tell which is better")


def test_a_point_that_one_alone_has_decides_nothing_where_both_are() -> None:
    a, b = points("A", (43, 80), share=0.1), [*points("B", (43, 82), share=0.1), *points("B", (60, 40))]
    text = sentence(answer_of([*a, *b], MEDIAN, OUTPUT), [*a, *b])
    assert text.startswith("Cannot tell which is better: the intervals decide at no speed that both have.")
    assert text.endswith("Above 43 tokens/s only B was measured.")


def test_without_any_interval_none_is_better() -> None:
    answer, text = said([*points("A", *STEEP, share=None), *points("B", *FLAT, share=None)])
    assert answer.sure is None
    assert mentions(text, "Cannot tell which is better: no point has an interval. As measured, A is better for every")
    assert mentions(caveats(answer), "more requests are needed", "20 seconds")


def test_beside_a_point_without_an_interval_nothing_is_sure() -> None:
    fast = points("A", (20, 400), (40, 150), (60, 10))
    slow = replace(fast[0], speeds={MEDIAN: quantity(20, None)})
    answer, text = said([slow, *fast[1:], *points("B", *FLAT)])
    assert answer.open[0] == (0, 40)
    assert text.startswith("B is better from 40 tokens/s on: ")
    assert mentions(text, "The intervals do not decide below 40 tokens/s. Above 60 tokens/s only B was measured.")
    alone = replace(fast[2], speeds={MEDIAN: quantity(60, None)})
    answer, _ = said([*fast[:2], alone, *points("B", *FLAT)])
    assert answer.open[-1] == (40, 60)
    assert any(stretch.best == "A" for stretch in answer.sure or ())


def test_who_was_not_measured_for_slow_users_is_named() -> None:
    answer, _ = said([*points("A", (20, 400), (60, 10)), *points("B", (50, 150), (100, 120))])
    assert mentions(caveats(answer), "B was not measured below 50 tokens/s")


def test_between_two_speeds_that_one_wins_the_undecided_ones_are_named() -> None:
    near = [*points("A", (10, 200), (30, 100), (60, 80)), *points("B", (10, 150), (30, 99), (55, 40))]
    answer, text = said(near)
    (undecided,) = answer.open
    low, high = (f"{each:.4g}" for each in undecided)
    assert undecided[0] < 30 < undecided[1]
    assert text.startswith(f"A is better for every user slower than {low} tokens/s, and again from {high} tokens/s on:")
    assert mentions(text, f"speed. The intervals do not decide from {low} to {high} tokens/s.")
    assert not mentions(caveats(answer), "do not decide")


def within(name: str, *rows: tuple[float, float, float]) -> list[Point]:
    """A point for each speed, throughput, and half of the width of the interval of that."""
    bare = points(name, *((speed, rate) for speed, rate, _ in rows))
    return [
        replace(
            each,
            speeds={MEDIAN: Quantity(speed, speed - 0.1, speed + 0.1)},
            rates={OUTPUT: Quantity(rate, rate - half, rate + half)},
        )
        for each, (speed, rate, half) in zip(bare, rows, strict=True)
    ]


UNDECIDED: dict[str, tuple[list[Point], str, str]] = {
    "below": (
        [*within("A", (7, 898, 28), (20, 300, 1)), *within("B", (7, 898, 16), (20, 200, 1))],
        "A is better from ",
        "The intervals do not decide below ",
    ),
    "several crossings in one range": (
        [
            *within("A", (7, 898, 28), (7.5, 880, 28), (20, 300, 1)),
            *within("B", (7, 895, 28), (7.4, 890, 28), (20, 9, 1)),
        ],
        "A is better from ",
        "The intervals do not decide below ",
    ),
    "above": (
        [
            *within("A", (10, 100, 1), (20, 80, 8), (40, 50, 8)),
            *within("B", (10, 95, 1), (20, 79, 8), (40, 49, 8)),
        ],
        "A is better for every user slower than 11.",
        "The intervals do not decide from 11.",
    ),
    "a crossing that nobody is better beyond": (
        [
            *within("A", (10, 100, 1), (20, 79, 8), (40, 50, 8)),
            *within("B", (10, 95, 1), (20, 80, 8), (40, 51, 8)),
        ],
        "A is better for every user slower than 11.",
        " to 40 tokens/s.",
    ),
}


def test_a_winner_is_named_only_where_the_intervals_decide() -> None:
    for name, (some, begin, undecided) in UNDECIDED.items():
        with case(name):
            _, text = said(some)
            assert text.startswith(begin)
            assert mentions(text, undecided)
            assert "B" not in text
            assert "95%" not in text


def test_what_was_measured_where_nothing_is_decided_has_no_interval() -> None:
    _, text = said([*within("A", (10, 100, 30), (20, 70, 30)), *within("B", (10, 90, 30), (20, 80, 30))])
    assert text.endswith("As measured, A is better for every user slower than 15 tokens/s, B beyond.")


def test_equal_points_are_as_good() -> None:
    _, text = said([*points("A", (10, 100)), *points("B", (10, 100))])
    assert text.endswith("the intervals decide at no speed that both have. As measured, all are as good.")


def test_who_is_not_usable_is_in_no_answer() -> None:
    some = [*points("A", *STEEP), *points("B", *FLAT, unusable=("INVALID",))]
    answer, text = said(some)
    assert answer.curves.keys() == {"A"}
    assert mentions(text, "A: 400 output tokens/s/GPU for users at 20 tokens/s", "to 10 for users at 60 tokens/s")
    assert said(points("A", *STEEP, unusable=("INVALID",)))[1].startswith("No point is usable")


def test_three_configurations_have_three_ranges() -> None:
    some = [*points("A", (10, 900), (30, 100)), *points("B", (10, 500), (60, 80)), *points("C", (10, 100), (90, 90))]
    answer, text = said(some)
    assert [each.best for each in answer.best] == ["A", "B", "C", "C"]
    assert mentions(text, "A is better for every user slower than", "B from there to", "C beyond")


def test_each_speed_has_its_own_answer() -> None:
    some = [*points("A", *STEEP)]
    for speed, curves in ((MEDIAN, 1), (P90, 0)):
        with case(speed):
            assert len(answer_of(some, speed, OUTPUT).curves) == curves


def test_all_tokens_are_apart_from_output() -> None:
    _, text = said([*points("A", *STEEP), *points("B", *FLAT)], TOTAL)
    assert mentions(text, "more total tokens/s/GPU")
