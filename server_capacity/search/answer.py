"""The answer of a search: of each limit an estimate with its interval, and which of them holds. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["found", "at_least", "not_kept", "cannot_tell"]
"""``at_least``: every rate that could be tried keeps the limits; ``not_kept``: none does; ``cannot_tell``: neither."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95% interval, requests/s."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Estimate:
    """The highest rate below which one limit is kept; ``rate`` and ``interval`` None where it is unknown.

    ``slope``: d ln(share over) / d ln(rate) there. ``dispersion``: the variance of counts over, times that of
    independent requests. ``kept_everywhere``: at no rate that was tried was it broken.
    """

    limit: str
    rate: float | None = None
    interval: Interval | None = None
    slope: float | None = None
    dispersion: float | None = None
    kept_everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Island:
    """Rates above the answer at which every limit was kept again."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Of a server that remembers: the rate found when coming from below, and from above; they may be the same."""

    below: Estimate
    above: Estimate
    differ: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """The search's: ``rate`` and ``interval`` of the limit that holds, the lowest.

    ``limit``: its expression. ``at_least``: the highest rate that kept everything, where none broke anything.
    ``reason``: why there is no rate, or only "at least".
    """

    outcome: Outcome
    rate: float | None = None
    interval: Interval | None = None
    limit: str | None = None
    at_least: float | None = None
    reason: str = ""
    estimates: tuple[Estimate, ...] = ()
    islands: tuple[Island, ...] = ()
    memory: Memory | None = None
