"""A load through a fleet, request by request. Pure: the same seed gives the same run.

Exact for what it models: instances that are alike, each first come, first served by its servers; a router without
delay. All policies meet the same arrivals and the same services, so what differs between them is not chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.system.progress import tell
from server_capacity.models.fleet.policies import MINUTE_S
from server_capacity.models.fleet.routing import router
from server_capacity.models.fleet.run import FleetRun, Minute, Times
from server_capacity.models.fleet.scaling import Scaler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.models.fleet.demand import Demand
    from server_capacity.models.fleet.policies import Policy
    from server_capacity.models.fleet.routing import Routed, Routing
    from server_capacity.models.fleet.service import Floats, Service

_AT_ONCE = 1 << 16  # arrivals
_TASK, _STEPS = "Simulating {}", 1000


def simulate(
    service: Service,
    demand: Demand,
    policy: Policy,
    routing: Routing,
    *,
    bound_s: float,
    allowed: float,
    seed: int,
    minute_s: float = MINUTE_S,
    instances: int | None = None,
) -> FleetRun:
    """The run of a fleet that begins with so many idle instances; None: as many as its policy has at the first rate.

    ``bound_s``: the limit on the response time (seconds), over which a share of ``allowed`` may be. ``minute_s``: the
    length of a row of the timeline.
    """
    arriving, serving, choosing = (np.random.default_rng((seed, stream)) for stream in range(3))
    first = policy.first(demand.first_rps, service) if instances is None else instances
    fleet = router(routing, service, first, choosing)
    scaler = Scaler(policy, service, fleet)
    arrivals = _Arrivals(demand.parts(arriving))
    counted = _Minutes(service.overhead_s, bound_s, minute_s)
    length, now = demand.seconds, 0.0
    try:
        while now < length:
            came, until = arrivals.before(min(length, counted.next_s, scaler.next_s))
            services = service.services_s[serving.integers(0, len(service.services_s), len(came))]
            routed = fleet.serve(came, services)
            counted.saw(now, until, fleet.instances, routed)
            scaler.saw(now, until, routed)
            scaler.act(until)
            now = until
            tell(_TASK.format(policy.name), int(_STEPS * now / length), _STEPS)
    finally:
        tell(_TASK.format(policy.name), _STEPS, _STEPS)
    return FleetRun(policy.name, allowed, counted.all(), counted.times, scaler.paid_s)


class _Arrivals:
    """The arrivals of a demand, a part at a time."""

    def __init__(self, parts: Iterator[Floats]) -> None:
        self._parts = parts
        self._next: Floats = np.zeros(0)

    def before(self, end: float) -> tuple[Floats, float]:
        """The next arrivals before an instant, not too many at once, and the instant before which all were given."""
        while not len(self._next) and (part := next(self._parts, None)) is not None:
            self._next = part
        if not len(self._next):
            return self._next, end
        count = min(int(np.searchsorted(self._next, end)), _AT_ONCE)
        given, self._next = self._next[:count], self._next[count:]
        if count and not len(self._next):
            return given, float(given[-1])
        return given, end if self._next[0] >= end else float(given[-1])


class _Minutes:
    """The minutes of the timeline, each counted when it has ended."""

    def __init__(self, overhead_s: float, bound_s: float, minute_s: float) -> None:
        self._overhead_s, self._bound_s, self._minute_s = overhead_s, bound_s, minute_s
        self._ended: list[Minute] = []
        self._seconds = self._instance_s = 0.0
        self._taken: list[Floats] = []
        self.times = Times()

    @property
    def next_s(self) -> float:
        """When the minute ends."""
        return (len(self._ended) + 1) * self._minute_s

    def saw(self, begin: float, end: float, instances: int, routed: Routed) -> None:
        """Requests came between two instants of a minute, while so many instances took it."""
        self._seconds += end - begin
        self._instance_s += instances * (end - begin)
        self._taken.append(routed.ends - routed.arrivals + self._overhead_s)
        if end >= self.next_s:
            self._end()

    def all(self) -> tuple[Minute, ...]:
        """All of them; the last one may be shorter."""
        if self._seconds:
            self._end()
        return tuple(self._ended)

    def _end(self) -> None:
        taken = np.concatenate(self._taken)
        answered = taken[~np.isnan(taken)]
        self.times.add(answered)
        over = int((answered > self._bound_s).sum())
        p99 = float(np.quantile(answered, 0.99)) if len(answered) else None
        mean = self._instance_s / self._seconds
        self._ended.append(Minute(self._seconds, mean, len(taken), over, len(taken) - len(answered), p99))
        self._seconds = self._instance_s = 0.0
        self._taken = []
