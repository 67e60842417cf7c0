"""A stretch of users or sessions cut into blocks so long that each is nearly independent of the next. Pure."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from server_capacity.search.stretch import Slice, Stretch

BLOCK_CYCLES, LEAST_BLOCK_S = 2.0, 2.0
LEFT_OUT_SMALL, LEFT_OUT_LARGE = 2.0, 3.0  # cycles after a change of the number of users
SMALL_CHANGE = 0.25


class UsersBlock(NamedTuple):
    """Of the ``of`` requests of so many users, or of so many sessions a second, those ``over`` a limit."""

    users: float
    of: int
    over: int

    @property
    def share(self) -> float:
        """Over the limit."""
        return self.over / self.of if self.of else 0.0


def response_s(stretch: Stretch) -> float:
    """The mean time of an answer when the stretch ended, by Little's law; 0 where nothing was answered."""
    answered = sum(part.answered for part in stretch.slices)
    return stretch.in_flight * stretch.seconds / answered if answered else 0.0


def cycle_s(stretches: Sequence[Stretch], think_s: float) -> float:
    """The time from a user's request to the next one, as the last two stretches saw it."""
    return think_s + max((response_s(stretch) for stretch in stretches[-2:] if stretch.rate > 0), default=0.0)


def settled_blocks(stretches: Sequence[Stretch], limit: int, think_s: float) -> list[UsersBlock]:
    """The blocks of each stretch that counts, for limit number ``limit``, without what the stretch before it left."""
    found: list[UsersBlock] = []
    for place, stretch in enumerate(stretches):
        if stretch.rate > 0 and not stretch.void:
            cycle = cycle_s(stretches[max(0, place - 1) : place + 1], think_s)
            found += _blocks(stretch, limit, cycle)
    return found or whole_blocks(stretches, limit)


def whole_blocks(stretches: Sequence[Stretch], limit: int) -> list[UsersBlock]:
    """A block for each stretch that counts: all that there is where every one was too short to settle."""
    return [
        _block(stretch.rate, limit, stretch.slices) for stretch in stretches if stretch.rate > 0 and not stretch.void
    ]


def unsettled(stretches: Sequence[Stretch], limit: int, counted: Sequence[UsersBlock]) -> list[UsersBlock]:
    """A block for each stretch above all that counts: too short to settle, so what is over is no less later."""
    most = max((block.users for block in counted), default=math.inf)
    return [block for block in whole_blocks(stretches, limit) if block.users > most]


def joined(blocks: Iterable[UsersBlock]) -> list[UsersBlock]:
    """A block for each number of users, the fewest first."""
    by_users = groupby(sorted(blocks), key=lambda block: block.users)
    return [_sum(users, list(some)) for users, some in by_users]


def _blocks(stretch: Stretch, limit: int, cycle: float) -> Iterator[UsersBlock]:
    change = abs(math.log(stretch.before / stretch.rate)) if stretch.before > 0 else math.inf
    cycles = LEFT_OUT_SMALL if change < SMALL_CHANGE else LEFT_OUT_LARGE
    left_out_s = min(cycles * cycle, stretch.seconds / 2)
    yield from blocks_of(stretch, limit, left_out_s, max(LEAST_BLOCK_S, BLOCK_CYCLES * cycle))


def blocks_of(stretch: Stretch, limit: int, left_out_s: float, block_s: float) -> Iterator[UsersBlock]:
    """A stretch in blocks of so many seconds, without those that are left out at its beginning."""
    waiting: list[Slice] = []
    for part in stretch.slices:
        if part.start_s < stretch.start_s + left_out_s:
            continue
        waiting.append(part)
        if part.end_s - waiting[0].start_s >= block_s:
            yield _block(stretch.rate, limit, waiting)
            waiting = []
    if waiting:
        yield _block(stretch.rate, limit, waiting)


def _block(users: float, limit: int, parts: Iterable[Slice]) -> UsersBlock:
    return _sum(users, [UsersBlock(users, *part.counts[limit]) for part in parts])


def _sum(users: float, blocks: Sequence[UsersBlock]) -> UsersBlock:
    return UsersBlock(users, sum(block.of for block in blocks), sum(block.over for block in blocks))
