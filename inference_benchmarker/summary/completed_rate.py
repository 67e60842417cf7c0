"""Which requests count in a rate of completed ones, and over which time. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.words.units import NS

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

    ``otherwise``: the interval where no request is in this one, as of few answers that come in bursts, between which it
    may lie: [l, T + l), l the lower of the two latencies in the middle. A request has it, and is in the interval.

    ``gap_s``: the mean gap between requests. The answers in an interval that a drain cut short count for at least their
    gaps: a burst in what is left of it would make more completed than was sent.
    """

    begin_ns: float
    end_ns: float
    seconds: float
    otherwise: CompletedSpan | None = None
    gap_s: float = 0.0

    @classmethod
    def of(
        cls, middle_s: Middle | None, requests: int, first_abandoned_ns: int | None, window: Window
    ) -> CompletedSpan:
        """That of requests with latencies in the middle, of all that were sent, and when the first was given up."""
        if not window.planned_ns or middle_s is None:
            return cls(0.0, math.inf, window.duration_ns / NS)
        lower, median = (
            round(each * NS * 2) / 2 for each in (middle_s[0], sum(middle_s) / 2)
        )  # .5 ns are a float, too

        def shifted(begin: float, otherwise: CompletedSpan | None) -> CompletedSpan:
            end = begin + (window.planned_ns or 0)
            if first_abandoned_ns is not None:
                end = min(end, float(first_abandoned_ns))
            return cls(begin, end, max(end - begin, 0.0) / NS, otherwise, (window.planned_ns or 0) / requests / NS)

        return shifted(median - window.planned_ns / requests / 2, shifted(lower, None))

    def with_answers(self, number: float) -> CompletedSpan:
        """The interval once so many answers were counted in it."""
        return replace(self, seconds=max(self.seconds, number * self.gap_s))

    def holds(self, done: Int64) -> Mask:
        """Which of some instants are in it."""
        inside: Mask = (done >= self.begin_ns) & (done < self.end_ns)
        return inside


Middle = tuple[float, float]
"""The two latencies in the middle, s: twice the same of an odd number of them."""


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
        self._which = which
        self._spans = [span] if span.otherwise is None else [span, span.otherwise]
        self._numbers = [0] * len(self._spans)

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        which, done = self._which(part), part.int("done")
        for place, span in enumerate(self._spans):
            self._numbers[place] += int(np.count_nonzero(which & span.holds(done)))

    @property
    def span(self) -> CompletedSpan:
        """The interval: the other one where no request is in the first."""
        return self._spans[self._place].with_answers(self._numbers[self._place])

    @property
    def rate(self) -> float:
        """So many a second."""
        seconds = self.span.seconds
        return self._numbers[self._place] / seconds if seconds else 0.0

    @property
    def _place(self) -> int:
        return 0 if self._numbers[0] else len(self._spans) - 1
