"""The ends of an interval, moved so that 95% of them hold on endpoints of many kinds. Pure.

A posterior knows the queues that its prior knows. By split conformal prediction (Vovk, Gammerman and Shafer, 2005) its
ends are moved by what they lacked in searches of a family of endpoints whose capacities are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from server_capacity.search.answer import Interval

if TYPE_CHECKING:
    from server_capacity.search.curve import Fit


class Ends(NamedTuple):
    """The distances from a rate to its ``lower`` and ``upper`` end, in times of the posterior's, in ln(rate).

    They are of searches that last for at least so many ``answers``, one after the other.
    """

    answers: float
    lower: float
    upper: float


ENDS = (Ends(0.0, 1.98, 1.41), Ends(300.0, 1.0, 1.0), Ends(10_000.0, 1.0, 1.19))
"""Made by ``python -m tests.performance.capacity.family calibrate`` from searches of the set to choose by."""


def ends_for(answers: float) -> Ends:
    """The ends of a search that lasts for so many answers."""
    return next(each for each in reversed(ENDS) if answers >= each.answers)


def calibrated(found: Fit, answers: float) -> Fit:
    """The fit, its interval calibrated."""
    ends, rate, interval = ends_for(answers), found.rate, found.interval
    low, high = rate * (interval.low / rate) ** ends.lower, rate * (interval.high / rate) ** ends.upper
    return replace(found, interval=Interval(low, high))
