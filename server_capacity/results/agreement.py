"""The measures by which a result agrees with itself. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SAME, ROUNDED = 1e-6, 1e-4
"""The shares by which two numbers may differ: as written in full, and where one was rounded."""

HOURS_A_MONTH = 730


def like(one: float, other: float) -> bool:
    """Tells whether two numbers are the same but for the rounding of floats."""
    return math.isclose(one, other, rel_tol=SAME, abs_tol=1e-9)


def between(name: str, low: float, rate: float | None, high: float) -> Iterator[str]:
    """The problems of an interval, and of a rate that must lie in it."""
    if low > high:
        yield f"the interval of {name} goes from {low:g} to {high:g}"
    elif rate is not None and not low * (1 - SAME) <= rate <= high * (1 + SAME):
        yield f"{name} is {rate:g}, outside of its interval from {low:g} to {high:g}"


def needed(instances: int, each: float, target: float) -> bool:
    """Tells whether so many hold the target, and one fewer does not, where one holds so much."""
    return instances * each >= target * (1 - ROUNDED) and (instances - 1) * each <= target * (1 + ROUNDED)
