"""Points in a plane of which more is better both ways: which are on the frontier, and whose curve is the higher. Pure.

A configuration's curve is made of its own points on no other of which both values are higher, joined by straight lines.
It goes on level to slower users, since who is served faster is served, and ends at the fastest point that was measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Spot = tuple[float, float]
Curve = tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Speeds above ``low`` up to ``high`` at which ``best`` is the best; None where nobody knows.

    ``alone``: no other was measured at such speeds.
    """

    low: float
    high: float
    best: str | None
    alone: bool = False


def frontier(spots: Sequence[Spot]) -> list[int]:
    """The numbers of the points that no other one dominates: none is at least as good both ways, and better in one."""
    best, found = -math.inf, []
    order = sorted(range(len(spots)), key=lambda each: (-spots[each][0], -spots[each][1]))
    for x, members in groupby(order, key=lambda each: spots[each][0]):
        of_one_x = list(members)
        highest = spots[of_one_x[0]][1]
        if highest > best:
            found += [each for each in of_one_x if spots[each] == (x, highest)]
            best = highest
    return sorted(found)


def curve_of(spots: Sequence[Spot]) -> Curve:
    """The points of one configuration that are on its own frontier, the slowest first."""
    return tuple(sorted({spots[each] for each in frontier(spots)}))


def value_at(curve: Curve, speed: float) -> float | None:
    """The height of a curve; None beyond its end."""
    if not curve or speed > curve[-1][0]:
        return None
    if speed <= curve[0][0]:
        return curve[0][1]
    (x0, y0), (x1, y1) = next((one, other) for one, other in pairwise(curve) if speed <= other[0])
    return y0 + (y1 - y0) * (speed - x0) / (x1 - x0)


def stretches(curves: Mapping[str, Curve]) -> list[Stretch]:
    """The best configuration at every speed that was measured, as few stretches as can be."""

    def best(speed: float) -> tuple[str | None, bool]:
        known = {name: value for name, curve in curves.items() if (value := value_at(curve, speed)) is not None}
        highest = max(known.values())
        names = [name for name, value in known.items() if value == highest]
        return names[0] if len(names) == 1 else None, len(known) == 1

    return _merged(best, _edges(list(curves.values())))


def sure_stretches(
    lows: Mapping[str, Curve], highs: Mapping[str, Curve], unknown: Sequence[Spot] = ()
) -> list[Stretch]:
    """The same from the lower and the upper ends of intervals: the best one is above the upper end of every other.

    ``unknown``: from which speed to which there are no intervals.
    """

    def best(speed: float) -> tuple[str | None, bool]:
        if any(low < speed <= high for low, high in unknown):
            return None, False
        sure = [name for name, curve in lows.items() if _is_above(value_at(curve, speed), speed, name, highs)]
        return sure[0] if sure else None, False

    edges = {*_edges([*lows.values(), *highs.values()]), *(end for pair in unknown for end in pair)}
    return _merged(best, sorted(edges))


def envelope(curves: Mapping[str, Curve], best: Sequence[Stretch]) -> Curve:
    """The upper edge of all curves, from the slowest point that is on it."""
    found: list[Spot] = []
    for stretch in best:
        curve = curves[stretch.best] if stretch.best is not None else next(iter(curves.values()))
        begin = stretch.low or min(curve[0][0], stretch.high)
        within = [begin, *(x for x, _ in curve if begin < x < stretch.high), stretch.high]
        found += [(x, y) for x in within if (y := value_at(curve, x)) is not None]
    return tuple(dict.fromkeys(found))


def beside(curve: Curve, at: float) -> Spot:
    """From which speed to which a curve depends on its point at a speed: as far as the points on both sides."""
    slower, faster = [x for x, _ in curve if x < at], [x for x, _ in curve if x > at]
    return max(slower, default=0.0), min(faster, default=at)


def _is_above(value: float | None, speed: float, name: str, highs: Mapping[str, Curve]) -> bool:
    if value is None:
        return False
    others = (value_at(curve, speed) for other, curve in highs.items() if other != name)
    return all(other is None or value > other for other in others)


def _merged(best: Callable[[float], tuple[str | None, bool]], edges: Sequence[float]) -> list[Stretch]:
    """Between two edges nothing changes, so that the middle speaks for all."""
    found = [Stretch(low, high, *best((low + high) / 2)) for low, high in pairwise(edges)]
    groups = (list(members) for _, members in groupby(found, key=lambda each: (each.best, each.alone)))
    return [Stretch(group[0].low, group[-1].high, group[0].best, group[0].alone) for group in groups]


def _edges(curves: Sequence[Curve]) -> list[float]:
    """0, every point's speed, and where two curves cross."""
    pieces = [list(_pieces(curve)) for curve in curves if curve]
    points = {0.0, *(x for curve in curves for x, _ in curve)}
    crossings = {
        at
        for number, some in enumerate(pieces)
        for others in pieces[number + 1 :]
        for one in some
        for other in others
        if (at := _crossing(one, other)) is not None
    }
    return sorted(points | crossings)


def _pieces(curve: Curve) -> Iterator[tuple[Spot, Spot]]:
    yield (0.0, curve[0][1]), curve[0]
    yield from pairwise(curve)


def _crossing(one: tuple[Spot, Spot], other: tuple[Spot, Spot]) -> float | None:
    """The speed at which two pieces cross; None where they do not, or lie on each other."""
    low, high = max(one[0][0], other[0][0]), min(one[1][0], other[1][0])
    if low >= high:
        return None
    before, after = (_height(one, at) - _height(other, at) for at in (low, high))
    if before * after >= 0:
        return None
    return low + (high - low) * before / (before - after)


def _height(piece: tuple[Spot, Spot], x: float) -> float:
    (x0, y0), (x1, y1) = piece
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
