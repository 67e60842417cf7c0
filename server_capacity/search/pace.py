"""The pace of an endpoint: its answers, the most it completes, and its memory for a change of rate. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.stretch import Stretch

UNKNOWN_RELAXATION_ANSWERS = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """``answer_s``: the mean time of an answer, by Little's law; ``most``: the rate completed when overloaded."""

    answer_s: float = 0.0
    most: float | None = None

    def relaxation_s(self, rate: float) -> float:
        """The time after which the queue has nearly forgotten the rate before: 1 / (most (1 - sqrt(load))^2)."""
        if self.most is None:
            return UNKNOWN_RELAXATION_ANSWERS * self.answer_s
        root = math.sqrt(min(rate / self.most, 0.97))
        return max(self.answer_s, 1.0 / (self.most * (1.0 - root) ** 2))


def sent(stretch: Stretch) -> int:
    """Requests sent in a stretch."""
    return sum(part.sent for part in stretch.slices)


def growth(before: Stretch | None, stretch: Stretch, answer_s: float = 0.0) -> float:
    """By how much the backlog grew, beyond what a higher rate keeps in flight anyway."""
    was = 0 if before is None else before.in_flight
    return stretch.in_flight - was - 1.3 * max(0.0, stretch.rate - stretch.before) * answer_s


def overloaded(before: Stretch | None, stretch: Stretch, answer_s: float = 0.0) -> bool:
    """Tells whether a stretch sent more than was completed."""
    offered = stretch.rate * stretch.seconds
    return growth(before, stretch, answer_s) > max(6.0, 3.0 * math.sqrt(offered), 0.1 * offered)


def pace_of(stretches: Sequence[Stretch]) -> Pace:
    """The pace of what has been seen; stretches that are void say nothing of it."""
    pairs = [(None, stretch) for stretch in stretches[:1]] + list(pairwise(stretches))
    loads = [(before, stretch) for before, stretch in pairs if stretch.rate > 0 and not stretch.void]
    calm = [stretch for before, stretch in loads if not overloaded(before, stretch)]
    rates = sum(stretch.rate for stretch in calm)
    answer_s = sum(stretch.in_flight for stretch in calm) / rates if rates else 0.0
    completed = [
        (sent(stretch) - growth(before, stretch)) / stretch.seconds
        for before, stretch in loads
        if overloaded(before, stretch, answer_s) and stretch.seconds > 2 * answer_s and _is_counted(stretch)
    ]
    return Pace(answer_s, max(completed) if completed else None)


def _is_counted(stretch: Stretch) -> bool:
    """Tells whether all was counted: of the stretch that runs it is known only later."""
    return bool(stretch.slices) and stretch.slices[-1].end_s > stretch.end_s - 0.05 * stretch.seconds
