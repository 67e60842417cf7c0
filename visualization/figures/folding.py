"""Long lines become short ones: neighbours as one point. Pure."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from visualization.figures.figures import Points

MOST_POINTS = 600  # of a line


def folded(
    points: Sequence[tuple[float, float | None]], fold: Callable[[list[float]], float], most: int = MOST_POINTS
) -> Points:
    """At most so many points: neighbours become one, with the ``fold`` of their values."""
    size = neighbours(points, most)
    groups = [points[first : first + size] for first in range(0, len(points), size)]
    known = [(group[0][0], [y for _, y in group if y is not None]) for group in groups]
    return tuple((x, fold(values) if values else None) for x, values in known)


def by_step(
    values: Sequence[float | None],
    last: float,
    fold: Callable[[list[float]], float],
    most: int = MOST_POINTS,
    step: int = 1,
) -> Points:
    """The values of a time's steps from 0 on, ``folded``, each in the middle of its stretch and none after the last."""
    half = neighbours(values, most) * step / 2
    points = folded([(float(at * step), value) for at, value in enumerate(values)], fold, most)
    return tuple((max(min(x + half, last), x), y) for x, y in points)


def neighbours(points: Sequence[object], most: int = MOST_POINTS) -> int:
    """The number of neighbours that become one point."""
    return -(-len(points) // max(most, 1)) or 1


def cpu_points(table: Mapping[str, Sequence[float | None]], factor: float, most: int = MOST_POINTS) -> Points:
    """The CPU of a host or a process by second, from ``client.csv``, in percent times a factor."""
    pairs = zip(table["second"], table["cpu_percent"], strict=True)
    return folded([(x, None if y is None else y * factor) for x, y in pairs if x is not None], fmean, most)
