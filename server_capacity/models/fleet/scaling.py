"""A policy at work: datapoints out of what was served, changes that wait for each other, instances that start. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.fleet.policies import CpuUse, Scaling

if TYPE_CHECKING:
    from server_capacity.models.fleet.policies import Policy
    from server_capacity.models.fleet.routing import Routed, Router
    from server_capacity.models.fleet.service import Floats, Service

_KEPT = 90  # datapoints: fifteen minutes of the shortest


class Scaler:
    """Adds and removes a router's instances as its policy wants, and knows how many are paid.

    Where a policy ``waits``, one change at a time: the next waits until the instances of the last take requests. Then
    its cooldown begins. For so long those that it has added count as a part of what is to be added, and after a removal
    none is removed. Any other counts those that start among its instances.
    """

    def __init__(self, policy: Policy, service: Service, router: Router) -> None:
        self._policy, self._router = policy, router
        self._rules = policy if isinstance(policy, Scaling) else None
        self._meter = Meter(self._rules, service) if self._rules else None
        self._datapoints: list[float] = []
        self._datapoint_at = self._rules.period_s if self._rules else math.inf
        self._starting: list[tuple[float, int]] = []  # when they take requests, and how many; the soonest first
        self._out_until = self._in_until = -math.inf
        self._added = 0  # by the last change that added
        self._draining: list[float] = []
        self.paid_s = 0.0

    @property
    def next_s(self) -> float:
        """When there is something to do."""
        return min(self._datapoint_at, self._starting[0][0] if self._starting else math.inf)

    @property
    def _coming(self) -> int:
        return sum(count for _, count in self._starting)

    def saw(self, begin: float, end: float, routed: Routed) -> None:
        """Requests came between two instants, in which no instance came or went."""
        self.paid_s += (end - begin) * (self._router.instances + self._coming)
        self.paid_s += sum(max(0.0, min(end, each) - begin) for each in self._draining)
        self._draining = [each for each in self._draining if each > end]
        if self._meter:
            self._meter.saw(begin, end, self._router.instances, routed)

    def act(self, now: float) -> None:
        """Do what there is to do by now."""
        rules = self._rules
        if rules and self._meter and now >= self._datapoint_at:
            self._datapoints = [*self._datapoints, self._meter.datapoint()][-_KEPT:]
            self._datapoint_at += rules.period_s
            if not rules.waits:
                self._change_pods(now, rules)
            elif not self._starting:
                self._change(now, rules)
        while self._starting and now >= self._starting[0][0]:  # after the datapoint, which is of the others alone
            self._router.add(self._starting.pop(0)[1])

    def _change(self, now: float, rules: Scaling) -> None:
        instances = self._router.instances
        by = self._policy.wanted(self._datapoints, instances) - instances
        if by > 0 and now < self._out_until:
            by = max(0, by - self._added)
        if by > 0:
            self._added = by
            self._starting.append((now + rules.instance_start_s, by))
            self._out_until = now + rules.instance_start_s + rules.cooldown_out_s
        elif by < 0 and now >= self._in_until:
            self._remove(-by, now)
            self._in_until = now + rules.cooldown_in_s

    def _change_pods(self, now: float, rules: Scaling) -> None:
        """Those that start are removed first, the youngest before the others."""
        there = self._router.instances + self._coming
        by = self._policy.wanted(self._datapoints, there) - there
        if by > 0:
            self._starting.append((now + rules.instance_start_s, by))
        while by < 0 and self._starting:
            ready_at, count = self._starting.pop()
            by += count
            if by > 0:
                self._starting.append((ready_at, by))
        if by < 0:
            self._remove(-by, now)

    def _remove(self, count: int, now: float) -> None:
        self._draining += [end for end in self._router.remove(count) if end > now]


class Meter:
    """The metric of a policy, over the time since its last datapoint."""

    def __init__(self, rules: Scaling, service: Service) -> None:
        self._metric, self._service = rules.metric, service
        self._cpu = rules.cpu or CpuUse(0.0, 100 * service.mean_s / service.servers)
        self._underway = Underway()
        self._instance_s = self._sum = 0.0

    def saw(self, begin: float, end: float, instances: int, routed: Routed) -> None:
        """Requests came between two instants, and so many instances took them.

        A request counts when it is answered: AWS does not say when, and it is the later.
        """
        self._instance_s += instances * (end - begin)
        if self._metric in ("invocations", "requests"):
            refused = np.isnan(routed.ends)
            count = self._underway.ended(end, routed.ends[~refused]) + int(refused.sum())
            self._sum += count / instances if self._metric == "invocations" else count
        elif self._metric == "concurrency":
            self._sum += self._underway.within(begin, end, routed.arrivals, routed.ends + self._service.overhead_s)
        else:
            self._sum += self._underway.within(begin, end, routed.ends - routed.services, routed.ends)

    def datapoint(self) -> float:
        """The metric since the last one."""
        total, instance_s = self._sum, self._instance_s
        self._instance_s = self._sum = 0.0
        if self._metric in ("invocations", "requests"):
            return total
        if self._metric == "concurrency":
            return total / instance_s
        return self._cpu.idle + self._cpu.per_rps * total / instance_s / self._service.mean_s


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
