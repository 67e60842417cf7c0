"""A policy at work: datapoints out of what was served, changes that wait for each other, instances that start. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.fleet.policies import Scaling

if TYPE_CHECKING:
    from server_capacity.fleet.policies import Policy
    from server_capacity.fleet.routing import Routed, Router
    from server_capacity.fleet.service import Floats, Service

_KEPT = 90  # datapoints: fifteen minutes of the shortest


class Scaler:
    """Adds and removes a router's instances as its policy wants, and knows how many are paid.

    One change at a time: the next waits until the instances of the last take requests. Then its cooldown begins. For so
    long those that it has added count as a part of what is to be added, and after a removal none is removed.
    """

    def __init__(self, policy: Policy, service: Service, router: Router) -> None:
        self._policy, self._router = policy, router
        self._rules = policy if isinstance(policy, Scaling) else None
        self._meter = Meter(self._rules, service) if self._rules else None
        self._datapoints: list[float] = []
        self._datapoint_at = self._rules.period_s if self._rules else math.inf
        self._starting, self._ready_at = 0, math.inf
        self._out_until = self._in_until = -math.inf
        self._added = 0  # by the last change that added
        self._draining: list[float] = []
        self.paid_s = 0.0

    @property
    def next_s(self) -> float:
        """When there is something to do."""
        return min(self._datapoint_at, self._ready_at)

    def saw(self, begin: float, end: float, routed: Routed) -> None:
        """Requests came between two instants, in which no instance came or went."""
        self.paid_s += (end - begin) * (self._router.instances + self._starting)
        self.paid_s += sum(max(0.0, min(end, each) - begin) for each in self._draining)
        self._draining = [each for each in self._draining if each > end]
        if self._meter:
            self._meter.saw(begin, end, self._router.instances, routed)

    def act(self, now: float) -> None:
        """Do what there is to do by now."""
        if self._rules and self._meter and now >= self._datapoint_at:
            self._datapoints = [*self._datapoints, self._meter.datapoint()][-_KEPT:]
            self._datapoint_at += self._rules.period_s
            if not self._starting:
                self._change(now, self._rules)
        if now >= self._ready_at:  # after the datapoint, which is of the others alone
            self._router.add(self._starting)
            self._starting, self._ready_at = 0, math.inf

    def _change(self, now: float, rules: Scaling) -> None:
        instances = self._router.instances
        by = self._policy.wanted(self._datapoints, instances) - instances
        if by > 0 and now < self._out_until:
            by = max(0, by - self._added)
        if by > 0:
            self._starting = self._added = by
            self._ready_at = now + rules.instance_start_s
            self._out_until = self._ready_at + rules.cooldown_out_s
        elif by < 0 and now >= self._in_until:
            self._draining += [end for end in self._router.remove(-by) if end > now]
            self._in_until = now + rules.cooldown_in_s


class Meter:
    """The metric of a policy, over the time since its last datapoint."""

    def __init__(self, rules: Scaling, service: Service) -> None:
        self._metric, self._servers = rules.metric, service.servers
        self._underway = Underway()
        self._instance_s = self._sum = 0.0

    def saw(self, begin: float, end: float, instances: int, routed: Routed) -> None:
        """Requests came between two instants, and so many instances took them.

        A request counts when it is answered: AWS does not say when, and it is the later.
        """
        self._instance_s += instances * (end - begin)
        if self._metric == "invocations":
            refused = np.isnan(routed.ends)
            self._sum += (self._underway.ended(end, routed.ends[~refused]) + int(refused.sum())) / instances
        else:
            starts = routed.arrivals if self._metric == "concurrency" else routed.ends - routed.services
            self._sum += self._underway.within(begin, end, starts, routed.ends)

    def datapoint(self) -> float:
        """The metric since the last one, of an instance."""
        total, instance_s = self._sum, self._instance_s
        self._instance_s = self._sum = 0.0
        if self._metric == "invocations":
            return total
        return total / instance_s * (100 / self._servers if self._metric == "cpu" else 1)


class Underway:
    """Stretches of time from a start to an end, of which those are kept that have not ended."""

    def __init__(self) -> None:
        self._starts: Floats = np.zeros(0)
        self._ends: Floats = np.zeros(0)

    def within(self, begin: float, end: float, starts: Floats, ends: Floats) -> float:
        """The seconds of these and of those that are kept that lie between two instants; NaN is none."""
        starts, ends = np.concatenate([self._starts, starts]), np.concatenate([self._ends, ends])
        inside = np.minimum(ends, end) - np.maximum(starts, begin)
        later = ends > end
        self._starts, self._ends = starts[later], ends[later]
        return float(inside[inside > 0].sum())

    def ended(self, end: float, ends: Floats) -> int:
        """The number of these and of those that are kept that end by an instant, whenever they began."""
        ends = np.concatenate([self._ends, ends])
        self._ends = ends[ends > end]
        return len(ends) - len(self._ends)
