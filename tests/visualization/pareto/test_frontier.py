"""The frontier and the better curve, each against a search through everything."""

from __future__ import annotations

import random
from itertools import pairwise

from tests.case import case
from visualization.pareto.frontier import (
    Curve,
    Spot,
    Stretch,
    curve_of,
    envelope,
    frontier,
    stretches,
    sure_stretches,
    value_at,
)


def undominated(spots: list[Spot]) -> list[int]:
    return [
        place for place, (x, y) in enumerate(spots) if not any(u >= x and v >= y and (u, v) != (x, y) for u, v in spots)
    ]


def drawn(seed: int, most: int = 8) -> list[Spot]:
    draw = random.Random(seed)
    return [(draw.randint(1, 9), draw.randint(1, 9)) for _ in range(draw.randint(1, most))]


def test_the_frontier_is_what_a_search_through_all_pairs_finds() -> None:
    for seed in range(500):
        spots = drawn(seed)
        with case(seed):
            assert frontier(spots) == undominated(spots)
    assert frontier([]) == []


def test_a_point_that_is_there_twice_is_on_the_frontier_twice() -> None:
    assert frontier([(2, 2), (1, 1), (2, 2), (3, 1)]) == [0, 2, 3]


def test_a_curve_is_level_to_slower_users_straight_between_points_and_ends() -> None:
    curve = curve_of([(40, 100), (20, 300), (30, 90)])
    assert curve == ((20, 300), (40, 100))
    for speed, value in ((1, 300), (20, 300), (25, 250), (40, 100), (40.1, None)):
        with case(speed):
            assert value_at(curve, speed) == value
    assert value_at((), 1) is None


def best_by_search(curves: dict[str, Curve], speed: float) -> str | None:
    known = {name: value for name, curve in curves.items() if (value := value_at(curve, speed)) is not None}
    highest = [name for name, value in known.items() if value == max(known.values())]
    return highest[0] if len(highest) == 1 else None


def test_every_speed_has_the_best_curve() -> None:
    for seed in range(200):
        curves = {name: curve_of(drawn(3 * seed + place)) for place, name in enumerate("ABC")}
        found = stretches(curves)
        with case(seed):
            assert found[0].low == 0
            assert found[-1].high == max(curve[-1][0] for curve in curves.values())
            assert all(one.high == other.low for one, other in pairwise(found))
            for each in found:
                for share in (0.1, 0.37, 0.9):
                    speed = each.low + share * (each.high - each.low)
                    assert best_by_search(curves, speed) == each.best
                    others = [name for name in curves if value_at(curves[name], speed) is not None]
                    assert each.alone == (len(others) == 1)


def test_two_straight_curves_cross_where_arithmetic_says() -> None:
    curves: dict[str, Curve] = {"A": ((20, 400), (60, 0)), "B": ((20, 200), (100, 120))}
    # 400 - 10 (s - 20) = 200 - (s - 20): s = 20 + 200 / 9
    first, second, third = stretches(curves)
    assert (first.best, second.best, third.best) == ("A", "B", "B")
    assert abs(first.high - (20 + 200 / 9)) < 1e-9
    assert (second.high, third.alone) == (60, True)


def test_nothing_is_sure_where_the_lower_end_of_one_is_below_the_upper_end_of_another() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        boxes = {
            name: [(x, x + draw.random(), y, y + draw.random()) for x, y in drawn(2 * seed + place)]
            for place, name in enumerate("AB")
        }
        lows = {name: curve_of([(box[0], box[2]) for box in each]) for name, each in boxes.items()}
        highs = {name: curve_of([(box[1], box[3]) for box in each]) for name, each in boxes.items()}
        with case(seed):
            for stretch in sure_stretches(lows, highs):
                speed = (stretch.low + stretch.high) / 2
                sure = [
                    name
                    for name, other in (("A", "B"), ("B", "A"))
                    if (low := value_at(lows[name], speed)) is not None
                    and ((high := value_at(highs[other], speed)) is None or low > high)
                ]
                assert sure == ([] if stretch.best is None else [stretch.best])


def test_the_upper_edge_is_as_high_as_the_highest_curve() -> None:
    for seed in range(200):
        curves = {name: curve_of(drawn(2 * seed + place)) for place, name in enumerate("AB")}
        edge = envelope(curves, stretches(curves))
        with case(seed):
            assert [x for x, _ in edge] == sorted(x for x, _ in edge)
            for one, other in pairwise(edge):
                middle = (one[0] + other[0]) / 2
                heights = [value for curve in curves.values() if (value := value_at(curve, middle)) is not None]
                assert other[0] == one[0] or abs((one[1] + other[1]) / 2 - max(heights)) < 1e-9


def test_equal_curves_have_no_best() -> None:
    assert stretches({"A": ((1, 1),), "B": ((1, 1),)}) == [Stretch(0, 1, None)]
