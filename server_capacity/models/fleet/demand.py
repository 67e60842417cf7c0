"""The load over time: steps and ramps with Poisson arrivals, or a recording. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inference_benchmarker.plan.stage import Stage
    from server_capacity.models.fleet.service import Floats

_AT_ONCE = 1 << 16  # arrivals
_MINUTE = 60.0


class Demand(Protocol):
    """Arrivals in order, some at a time: seconds from 0 on, all before ``seconds``."""

    @property
    def seconds(self) -> float:
        """The length of all of it."""

    @property
    def first_rps(self) -> float:
        """The rate at which it begins, requests/s."""

    def parts(self, draws: np.random.Generator) -> Iterator[Floats]:
        """All arrivals, ascending."""


class Step(NamedTuple):
    """``seconds`` from one rate to another along a straight line, requests/s."""

    first: float
    last: float
    seconds: float

    @property
    def arrivals(self) -> float:
        """Their mean number."""
        return (self.first + self.last) / 2 * self.seconds


@dataclass(frozen=True)
class Steps:
    """Poisson arrivals at the rate of each step in turn."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, stages: Iterable[Stage]) -> Steps:
        """Those of ``--stages``."""
        return cls(tuple(Step(float(each.from_rps), float(each.to_rps), float(each.duration_s)) for each in stages))

    @property
    def seconds(self) -> float:
        """The length of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def first_rps(self) -> float:
        """The first rate."""
        return self.steps[0].first

    def parts(self, draws: np.random.Generator) -> Iterator[Floats]:
        """Of each piece a Poisson number; given that, they are spread as the rate is."""
        begin = 0.0
        for step in self.steps:
            for piece in _pieces(step):
                places = _spread(piece, np.sort(draws.random(draws.poisson(piece.arrivals))))
                yield begin + places * piece.seconds
                begin += piece.seconds


@dataclass(frozen=True)
class Recorded:
    """The arrivals of a recording: ``read`` gives them from the beginning each time, as ``parts`` does."""

    read: Callable[[], Iterator[Floats]]
    seconds: float

    @classmethod
    def of(cls, arrivals_s: Floats, seconds: float) -> Recorded:
        """All of them at once: seconds after the begin, ascending."""
        return cls(lambda: (arrivals_s[at : at + _AT_ONCE] for at in range(0, len(arrivals_s), _AT_ONCE)), seconds)

    @property
    def first_rps(self) -> float:
        """The rate of its first minute."""
        length, count = min(_MINUTE, self.seconds), 0
        for part in self.read():
            count += int(np.searchsorted(part, length))
            if len(part) and part[-1] >= length:
                break
        return count / length

    def parts(self, _draws: np.random.Generator) -> Iterator[Floats]:
        """As they were recorded."""
        return self.read()


def _pieces(step: Step) -> Iterator[Step]:
    """The step in as many equal parts as keep the arrivals of each few."""
    number = max(1, math.ceil(step.arrivals / _AT_ONCE))
    rates = np.linspace(step.first, step.last, number + 1).tolist()
    for first, last in pairwise(rates):
        yield Step(first, last, step.seconds / number)


def _spread(step: Step, shares: Floats) -> Floats:
    """The places in the step (0 to 1) at which the area under its rate has reached these shares."""
    if step.first == step.last:
        return shares
    begin, end = step.first**2, step.last**2
    rates = np.sqrt(begin + (end - begin) * shares)
    places: Floats = (rates - step.first) / (step.last - step.first)
    return np.clip(places, 0.0, np.nextafter(1.0, 0.0))
