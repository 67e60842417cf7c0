"""The load that a replica serves behind a router that keeps conversations together, and behind one that does not. Pure.

With random routing over R replicas a later turn finds its conversation with probability 1/R at the replica of the turn
before it. Behind either router chance loads replicas unevenly. Few values of R are simulated, and what lies between
them is interpolated in 1/R.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from server_capacity.planning.users.replica import MOST_ENGINES
from server_capacity.results.types.users_plan import PREFIX_AWARE

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.results.types.users_plan import Routing


GRID = (1, 2, 4, 8, 16, 64)
NOWHERE = 1 << 20
"""So many replicas that no turn finds its conversation: simulated in place of more than those of the grid."""
PRECISION = 0.02
MOST_TIMES = 4.0
"""A replica that serves so many times what it served in the search is not the one that was searched."""
_STEP = 1.25


class Routed(NamedTuple):
    """The load of a replica in the simulation: users at a time, conversations a second, and its hit rate."""

    users: int
    sessions_per_s: float
    hit_rate: float


class Held(NamedTuple):
    """The part of the load of a single replica that each of several serves, from 0 to 1, and its hit rate."""

    share: float
    hit_rate: float


@dataclass(slots=True)
class Routings:
    """Both routings; ``simulate`` tells what so many users get on each of so many replicas, None where it fails them.

    ``alone``: a single replica. ``in_users``: shares are those of users at a time, else of conversations a second.
    """

    simulate: Callable[[int, int, Routing], Routed | None]
    alone: Routed
    in_users: bool
    _known: dict[tuple[Routing, int], Held] = field(default_factory=dict)

    def held(self, routing: Routing, replicas: int) -> Held:
        """Each of so many replicas; of more of them none serves more, nor with random routing more than else."""
        if routing == PREFIX_AWARE:
            return self._between(routing, min(replicas, MOST_ENGINES))
        aware, spread = self.held(PREFIX_AWARE, replicas), self._between(routing, replicas)
        return Held(*map(min, aware, spread))

    def _between(self, routing: Routing, replicas: int) -> Held:
        below = max(each for each in GRID if each <= replicas)
        above = min((each for each in GRID if each >= replicas), default=NOWHERE)
        few, many = self._at(routing, below), self._at(routing, above)
        if below == above:
            return few
        part = (1 / below - 1 / replicas) / (1 / below - 1 / above)
        return Held(*(one + part * (other - one) for one, other in zip(few, many, strict=True)))

    def _at(self, routing: Routing, replicas: int) -> Held:
        if replicas == 1:
            return Held(1.0, self.alone.hit_rate)
        if (routing, replicas) not in self._known:
            fewer = [count for of, count in self._known if of == routing and count < replicas]
            before = self._at(routing, max(fewer, default=1))
            guess = max(1, round(before.share * self.alone.users))
            found = most_users(lambda users: self.simulate(users, replicas, routing), guess)
            share = self._size(found) / self._size(self.alone) if found else 0.0
            hit_rate = found.hit_rate if found else 0.0
            self._known[routing, replicas] = Held(min(before.share, share), min(before.hit_rate, hit_rate))
        return self._known[routing, replicas]

    def _size(self, found: Routed) -> float:
        return float(found.users) if self.in_users else found.sessions_per_s


def most_users(simulate: Callable[[int], Routed | None], guess: int) -> Routed | None:
    """The most users that meet the limits, to within 2%; None where not even one does, or any number."""
    met, missed, users = None, 0, max(1, guess)
    while not (met and missed):
        found = simulate(users)
        if found is None:
            missed = users
            if users == 1:
                return None
            users = min(users - 1, round(users / _STEP))
        else:
            met = found
            if missed:
                break
            if users > MOST_TIMES * guess:
                return None
            users = max(users + 1, round(users * _STEP))
    while missed - met.users > max(1.0, PRECISION * met.users):
        users = (met.users + missed) // 2
        found = simulate(users)
        if found is None:
            missed = users
        else:
            met = found
    return met
