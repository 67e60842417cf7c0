"""The run of a simulated fleet: its minutes, and what they come to. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from server_capacity.results.types import plan

if TYPE_CHECKING:
    from server_capacity.models.fleet.service import Floats

_MINUTE, _HOUR = 60.0, 3600.0
_MONTH_H = 730
_LEAST_S, _CELLS_PER_E, _CELLS = 1e-7, 1000, 33_000  # cells of 0.1%, up to 20 million seconds


class Minute(NamedTuple):
    """A minute, the last one perhaps shorter: its arrivals, and what became of them.

    ``instances``: that took requests, on average. ``over``: answers that took longer than the limit. ``p99``: of the
    answers (seconds), None where there is none.
    """

    seconds: float
    instances: float
    requests: int
    over: int
    refused: int
    p99: float | None

    @property
    def share_over(self) -> float:
        """Of its requests, those that took longer or were refused."""
        return (self.over + self.refused) / self.requests if self.requests else 0.0

    def to_row(self, place: int) -> plan.Minute:
        """A row of ``timeline``."""
        return plan.Minute(place, self.requests / self.seconds, self.instances, self.share_over, self.p99)


class Times:
    """Response times counted in cells of a thousandth of their size, so that any number of them needs no memory."""

    def __init__(self) -> None:
        self._counts = np.zeros(_CELLS, np.int64)
        self._sum = 0.0

    def add(self, times_s: Floats) -> None:
        """Count some."""
        cells = np.log(np.maximum(times_s, _LEAST_S) / _LEAST_S) * _CELLS_PER_E
        self._counts += np.bincount(np.minimum(cells, _CELLS - 1).astype(np.int64), minlength=_CELLS)
        self._sum += float(times_s.sum())

    @property
    def count(self) -> int:
        """Their number."""
        return int(self._counts.sum())

    @property
    def mean(self) -> float | None:
        """Their mean, seconds."""
        return self._sum / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """The time that a share of them does not exceed, seconds, to 0.1%."""
        counted = np.cumsum(self._counts)
        if not counted[-1]:
            return None
        cell = int(np.searchsorted(counted, math.ceil(share * counted[-1])))
        return _LEAST_S * math.exp((cell + 0.5) / _CELLS_PER_E)


@dataclass(frozen=True)
class FleetRun:
    """A fleet's run under one policy. ``allowed``: the share of requests that may be over the limit.

    ``paid_s``: seconds of instances, from the change that asks for one until it has served its last request.
    """

    policy: str
    allowed: float
    minutes: tuple[Minute, ...]
    times: Times
    paid_s: float

    @property
    def seconds(self) -> float:
        """The length of the load."""
        return sum(minute.seconds for minute in self.minutes)

    @property
    def requests(self) -> int:
        """All that arrived."""
        return sum(minute.requests for minute in self.minutes)

    @property
    def over(self) -> int:
        """Answers that took longer than the limit."""
        return sum(minute.over for minute in self.minutes)

    @property
    def refused(self) -> int:
        """Requests that found no place to wait."""
        return sum(minute.refused for minute in self.minutes)

    @property
    def minutes_over(self) -> float:
        """The minutes in which the limit was not kept."""
        return sum(minute.seconds for minute in self.minutes if minute.share_over > self.allowed) / _MINUTE

    @property
    def instance_hours(self) -> float:
        """The hours of instances that are paid."""
        return self.paid_s / _HOUR

    def to_result(self, file: str | None, per_hour: float | None = None) -> plan.Run:
        """The run in a plan, of whose files it is ``file``; ``per_hour``: the price of an instance, where known."""
        requests, seconds = self.requests, self.seconds
        return plan.Run(
            policy=self.policy,
            requests=requests,
            over=self.over,
            share_over=(self.over + self.refused) / requests if requests else 0.0,
            minutes=seconds / _MINUTE,
            minutes_over=self.minutes_over,
            refused=self.refused,
            instance_hours=self.instance_hours,
            cost=None if per_hour is None else self._cost(per_hour),
            mean=self.times.mean,
            p99=self.times.quantile(0.99),
            mean_instances=sum(each.instances * each.seconds for each in self.minutes) / seconds,
            most_instances=max(each.instances for each in self.minutes),
            timeline=[minute.to_row(place) for place, minute in enumerate(self.minutes)],
            file=file,
        )

    def _cost(self, per_hour: float) -> plan.RunCost:
        total = self.instance_hours * per_hour
        hour = total / (self.seconds / _HOUR)
        return plan.RunCost(total, hour, hour * _MONTH_H, total / self.requests * 1e6 if self.requests else None)
