"""A load that is changed while the wave runs, and what a wave has offered so, as stages or populations. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import MAX_CONCURRENCY, ClosedLoop, OpenLoop, Population
from inference_benchmarker.plan.stage import LEAST_RATE, MAX_RATE, Stage
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.plan.plan import WavePlan

MS = NS // 1000
"""A stage lasts whole milliseconds, so a change comes into force at one."""


@dataclass(frozen=True, slots=True)
class RateChange:
    """A new rate (requests/s, exact) and from when on it holds: ns after wave start, a whole millisecond.

    In a closed loop it is the number of users.
    """

    at_ns: int
    rate: Decimal


def can_be_offered(rate: Decimal) -> bool:
    """Tells whether a stage may have this rate; 0 is a pause."""
    return rate.is_finite() and (rate == 0 or LEAST_RATE <= rate <= MAX_RATE)


def can_be_present(users: Decimal) -> bool:
    """Tells whether a closed loop may have so many users; 0 is a pause."""
    return users.is_finite() and users == int(users) and 0 <= users <= MAX_CONCURRENCY


def rate_at(load: OpenLoop | ClosedLoop, changes: Iterable[RateChange], at_ns: int) -> float | None:
    """The rate that is to be offered at an instant, requests/s, as far as is known by now; None in the closed loop."""
    if isinstance(load, ClosedLoop):
        return None
    in_force = [float(change.rate) for change in changes if change.at_ns <= at_ns]
    return in_force[-1] if in_force else load.rate_at(at_ns / NS)


def as_offered(plan: WavePlan, changes: Iterable[RateChange], end_ns: int) -> WavePlan:
    """The plan of a steered wave that ended then, with what was offered as its stages or populations.

    Another plan stays as it is. The end is the whole millisecond that is not before ``end_ns``.
    """
    if not plan.load.is_steered:
        return plan
    end, first = whole_ms(max(end_ns, 1)), plan.load.rate if isinstance(plan.load, OpenLoop) else plan.load.concurrency
    starts, rates = [0], [Decimal(first)]
    for change in changes:
        if change.at_ns < end:
            starts.append(change.at_ns)
            rates.append(change.rate)
    lengths = [Decimal(stop - start) / NS for start, stop in zip(starts, [*starts[1:], end], strict=True)]
    return replace(plan, load=_over(plan.load, rates, lengths), bounds=replace(plan.bounds, duration_s=None))


def _over(load: OpenLoop | ClosedLoop, rates: list[Decimal], lengths: list[Decimal]) -> OpenLoop | ClosedLoop:
    """A steered load that is over: its rates or numbers of users, and the seconds that each was in force."""
    pairs = zip(rates, lengths, strict=True)
    if isinstance(load, ClosedLoop):
        return replace(load, populations=tuple(Population(int(users), length) for users, length in pairs))
    stages = tuple(Stage(rate, rate, length) for rate, length in pairs)
    return OpenLoop(arrivals=load.arrivals, stages=stages, steered=True, think=load.think)


def whole_ms(at_ns: int) -> int:
    """The first whole millisecond that is not before an instant."""
    return -(-at_ns // MS) * MS
