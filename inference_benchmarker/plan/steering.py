"""A rate that is changed while the wave runs, and what a wave has offered so, as stages. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop, OpenLoop
from inference_benchmarker.plan.stage import LEAST_RATE, MAX_RATE, Stage
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.plan.plan import WavePlan

MS = NS // 1000
"""A stage lasts whole milliseconds, so a change comes into force at one."""


@dataclass(frozen=True, slots=True)
class RateChange:
    """A new rate (requests/s, exact) and from when on it holds: ns after wave start, a whole millisecond."""

    at_ns: int
    rate: Decimal


def can_be_offered(rate: Decimal) -> bool:
    """Tells whether a stage may have this rate; 0 is a pause."""
    return rate.is_finite() and (rate == 0 or LEAST_RATE <= rate <= MAX_RATE)


def rate_at(load: OpenLoop | ClosedLoop, changes: Iterable[RateChange], at_ns: int) -> float | None:
    """The rate that is to be offered at an instant, requests/s, as far as is known by now; None in the closed loop."""
    if isinstance(load, ClosedLoop):
        return None
    in_force = [float(change.rate) for change in changes if change.at_ns <= at_ns]
    return in_force[-1] if in_force else load.rate_at(at_ns / NS)


def as_offered(plan: WavePlan, changes: Iterable[RateChange], end_ns: int) -> WavePlan:
    """The plan of a steered wave that ended then, with what was offered as its stages. Another plan stays as it is.

    The end is the whole millisecond that is not before ``end_ns``.
    """
    if not isinstance(plan.load, OpenLoop) or not plan.load.is_steered:
        return plan
    end = whole_ms(max(end_ns, 1))
    starts, rates = [0], [plan.load.rate]
    for change in changes:
        if change.at_ns < end:
            starts.append(change.at_ns)
            rates.append(change.rate)
    lengths = (Decimal(stop - start) / NS for start, stop in zip(starts, [*starts[1:], end], strict=True))
    stages = tuple(Stage(rate, rate, length) for rate, length in zip(rates, lengths, strict=True))
    load = OpenLoop(arrivals=plan.load.arrivals, stages=stages, steered=True)
    return replace(plan, load=load, bounds=replace(plan.bounds, duration_s=None))


def whole_ms(at_ns: int) -> int:
    """The first whole millisecond that is not before an instant."""
    return -(-at_ns // MS) * MS
