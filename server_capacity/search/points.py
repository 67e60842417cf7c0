"""A stretch as one limit sees it: requests, those over it, in blocks. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.pace import Pace
    from server_capacity.search.stretch import Slice, Stretch

SMALL_CHANGE = 0.25
FORGOTTEN = 3.0
BLOCK_RELAXATIONS = 3.0
CORRELATED, CORRELATED_LOAD = 0.8, 0.94  # relaxations: so long requests over go together; above the load, no longer
SATURATED = 0.3  # the share over from which a stretch is one burst


@dataclass(frozen=True, slots=True)
class Point:
    """Of a stretch at ``rate``; ``blocks``: requests over in parts that are long enough to be independent.

    ``seconds``: its length. ``whole``: the part of a long block's dispersion that one so short has, as bursts reach
    beyond it.
    """

    rate: float
    of: int
    over: int
    blocks: tuple[int, ...]
    seconds: float = 0.0
    whole: float = 1.0

    @property
    def share(self) -> float:
        """Over the limit."""
        return self.over / self.of if self.of else 0.0


def points_of(stretches: Sequence[Stretch], limit: int, pace: Pace) -> list[Point]:
    """Of each stretch that counts, what it says of limit number ``limit``."""
    points = (_point(stretch, limit, pace) for stretch in stretches if stretch.rate > 0 and not stretch.void)
    return [point for point in points if point is not None]


def _point(stretch: Stretch, limit: int, pace: Pace) -> Point | None:
    """A large change is waited out; after small ones, up and down in turn, what the queue carries over evens out."""
    relaxation_s = pace.relaxation_s(stretch.rate)
    small = stretch.before > 0 and abs(math.log(stretch.before / stretch.rate)) < SMALL_CHANGE
    from_s = stretch.start_s + (0.0 if small else min(FORGOTTEN * relaxation_s, stretch.seconds / 2))
    parts = [part for part in stretch.slices if part.start_s >= from_s - 1e-9]
    of = sum(part.counts[limit].of for part in parts)
    if not of:
        return None
    over = sum(part.counts[limit].over for part in parts)
    blocks = _blocks(parts, limit, BLOCK_RELAXATIONS * relaxation_s) if over < SATURATED * of else (over,)
    block_s = (parts[-1].end_s - parts[0].start_s) / len(blocks)
    whole = whole_bursts(block_s, CORRELATED * pace.relaxation_s(stretch.rate, CORRELATED_LOAD))
    return Point(stretch.rate, of, over, blocks, stretch.seconds, whole)


def whole_bursts(block_s: float, correlated_s: float) -> float:
    """The dispersion beyond 1 of a block of so many seconds, over that of a long one.

    Of an intensity whose correlation falls off exponentially within a time T, the variance of what is counted in t is
    that of long counts times 1 - (1 - exp(-t/T)) / (t/T).
    """
    times = max(1e-6, block_s / max(correlated_s, 1e-9))
    return 1.0 + math.expm1(-times) / times


def _blocks(parts: Sequence[Slice], limit: int, least_s: float) -> tuple[int, ...]:
    """Requests over in equal parts of at least so many seconds each, or in all."""
    count = max(1, min(len(parts), int((parts[-1].end_s - parts[0].start_s) / max(least_s, 1e-9))))
    over = [0] * count
    for place, part in enumerate(parts):
        over[place * count // len(parts)] += part.counts[limit].over
    return tuple(over)
