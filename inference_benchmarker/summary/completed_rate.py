"""Which requests count in a rate of completed ones, and over which time. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.facts.wave_facts import Window
    from inference_benchmarker.records.columns import Int64, Mask, Records


@dataclass(frozen=True, slots=True)
class CompletedSpan:
    """The interval of a completed rate, in ns: [m - h, T + m - h), m the median latency, h half the mean gap.

    Shifted by m, so that neither the first answer's delay nor one straggler moves it; by h, so that a jitter of
    less than the gap does not either. A drain that was cut short ends the interval, and it is that much shorter.
    Without T, or a request to count, it is the whole duration.
    """

    begin_ns: float
    end_ns: float
    seconds: float

    @classmethod
    def of(cls, median_s: float | None, requests: int, first_abandoned_ns: int | None, window: Window) -> Self:
        """That of requests with a median latency, of all that were sent, and when the first of them was given up."""
        if not window.planned_ns or median_s is None:
            return cls(0.0, math.inf, window.duration_ns / NS)
        median_ns = round(median_s * NS * 2) / 2  # the half of a whole number of ns, which a float of seconds is not
        begin = median_ns - window.planned_ns / requests / 2
        end = begin + window.planned_ns
        if first_abandoned_ns is not None:
            end = min(end, float(first_abandoned_ns))
        return cls(begin, end, max(end - begin, 0.0) / NS)

    def holds(self, done: Int64) -> Mask:
        """Which of some instants are in it."""
        inside: Mask = (done >= self.begin_ns) & (done < self.end_ns)
        return inside


class FirstAbandoned:
    """Gathers when the first abandoned request was given up: ``done_ns``, None without one."""

    columns = ("outcome", "done")

    def __init__(self) -> None:
        self.done_ns: int | None = None

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        done = part.int("done")[part.outcome("abandoned")].tolist()
        self.done_ns = min([*done, *([] if self.done_ns is None else [self.done_ns])], default=None)


class CompletedGathered:
    """Gathers the number of some requests that were done in the interval of their completed rate."""

    def __init__(self, span: CompletedSpan, columns: Sequence[str], which: Callable[[Records], Mask]) -> None:
        self.columns = ("done", *columns)
        self._span, self._which = span, which
        self.number = 0

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        self.number += int(np.count_nonzero(self._which(part) & self._span.holds(part.int("done"))))

    @property
    def rate(self) -> float:
        """So many a second."""
        return self.number / self._span.seconds if self._span.seconds else 0.0
