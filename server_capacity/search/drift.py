"""The instant from which on answers took longer than load explains. Pure.

By load answers take longer at higher rates; where batches fill, also at lower ones. So at a rate between two others
they take no longer, on average, than at one of these: their mean is quasi-convex in the rate. What all stretches from
an instant on take beyond that, by several standard errors, comes with time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from server_capacity.search.pace import pace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inference_benchmarker.records.columns import Floats, Mask
    from server_capacity.search.limits import Limit
    from server_capacity.search.pace import Pace
    from server_capacity.search.stretch import Stretch

APART_S, LEAST_ANSWERS = 10.0, 20
"""So much later is another time; fewer answers show nothing."""
CHANCE = 2.4  # standard errors, of all stretches but the clearest
MOST_INSTANTS = 32  # that are looked at
WAITS, MOST_VARIANCE = 0.5, 1.0
"""The variance of the logarithm of a mean wait, over the part of a stretch that its queue remembers; and at most."""
LEAST_SD, LEAST_DISPERSION = 0.035, 0.1  # of a mean; of times, as the square of a coefficient of variation
FASTER = 0.05  # in the logarithm of a mean: so near is as fast
USUAL_DISPERSION, USUAL_ANSWERS = 0.5, 4.0  # before anything is known, and the number of answers that it counts for
CALM = 100  # answers that tell the time without a wait
LONG = 5.0  # such times: what is shorter begins with an empty queue and ends before it is full


class StretchTime(NamedTuple):
    """A stretch with enough answers: the logarithms of its rate and of their mean time, and the variance of that."""

    stretch: Stretch
    log_rate: float
    log_mean: float
    variance: float

    @property
    def mean_s(self) -> float:
        """The mean time of its answers."""
        return math.exp(self.log_mean)


class Drift(NamedTuple):
    """Stretches ``before`` and ``after`` the instant at which answers began to take longer."""

    before: Sequence[StretchTime]
    after: Sequence[StretchTime]

    def clearest(self) -> tuple[StretchTime, StretchTime]:
        """The two stretches that show it best: the later one at the same or a lower rate."""
        pairs = (
            (one, other)
            for one in self.before
            for other in self.after
            if other.log_rate <= one.log_rate and other.stretch.start_s - one.stretch.end_s >= APART_S
        )
        return max(
            pairs,
            key=lambda pair: (pair[1].log_mean - pair[0].log_mean) / math.sqrt(pair[0].variance + pair[1].variance),
        )

    @property
    def is_over(self) -> bool:
        """Tells whether a rate as high had answers as fast as before again later."""
        before, after = self.clearest()
        return any(
            each.log_rate >= after.log_rate and each.log_mean < before.log_mean + FASTER
            for each in self.after
            if each.stretch.start_s > after.stretch.start_s
        )


def drift_of(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> Drift | None:
    """The instant that shows it most clearly; None where none does, or where answers became faster again."""
    seen = seen_of(limits, stretches)
    parts = [Drift(seen[:first], seen[first:]) for first in _places(len(seen))]
    most = max(parts, key=_errors, default=None)
    return most if most is not None and _errors(most) > CHANCE and not most.is_over else None


def _places(count: int) -> Iterable[int]:
    if count <= MOST_INSTANTS:
        return range(1, count)
    return map(int, np.linspace(1, count - 1, MOST_INSTANTS))


def seen_of(limits: Sequence[Limit], stretches: Sequence[Stretch], least: int = LEAST_ANSWERS) -> list[StretchTime]:
    """The stretches that have so many answers, and are no shorter than some of them take."""
    failing = next((place for place, limit in enumerate(limits) if limit.metric == "success"), None)
    counted = [each for each in stretches if each.rate > 0 and not each.void]
    timed = [(each, times) for each in counted if (times := _Times.of(each, failing)).number >= least]
    timed = [(each, times) for each, times in timed if times.spent_s.sum() > 0]
    if not timed:
        return []
    enough = min(CALM, max(times.number for _, times in timed))
    idle_s = min(times.mean_s for _, times in timed if times.number >= enough)
    pace = pace_of(stretches)
    return [
        StretchTime(
            each, math.log(each.rate), math.log(times.mean_s), times.variance + _of_waits(each, times, pace, idle_s)
        )
        for each, times in timed
        if each.seconds >= LONG * idle_s
    ]


class _Times(NamedTuple):
    """Of the slices of a stretch: good answers, and their times added up (seconds)."""

    answers: Floats
    spent_s: Floats

    @classmethod
    def of(cls, stretch: Stretch, failing: int | None) -> _Times:
        failed = [0 if failing is None else each.counts[failing].over for each in stretch.slices]
        answers = [each.answered - bad for each, bad in zip(stretch.slices, failed, strict=True)]
        return cls(np.array(answers, float), np.array([each.spent_s for each in stretch.slices]))

    @property
    def number(self) -> float:
        return float(self.answers.sum())

    @property
    def mean_s(self) -> float:
        return float(self.spent_s.sum()) / self.number

    @property
    def variance(self) -> float:
        """Of the logarithm of the mean, by the spread between slices; of few answers, chance may hide it."""
        slices, number = np.count_nonzero(self.answers), self.number
        if slices <= 2:
            return 1.0 / number + LEAST_SD**2
        away = self.spent_s - self.mean_s * self.answers
        spread = float((away**2).sum()) * slices / (slices - 1) * (number / float(self.spent_s.sum())) ** 2
        dispersion = (spread + USUAL_DISPERSION * USUAL_ANSWERS) / (number + USUAL_ANSWERS)
        return max(dispersion, LEAST_DISPERSION) / number + LEAST_SD**2


def _of_waits(stretch: Stretch, times: _Times, pace: Pace, idle_s: float) -> float:
    """The variance that slices do not show, since one is like the next where a queue remembers long."""
    waited = 1.0 - min(1.0, idle_s / times.mean_s)
    return waited**2 * min(WAITS * pace.relaxation_s(stretch.rate) / stretch.seconds, MOST_VARIANCE)


def _errors(drift: Drift) -> float:
    """The standard errors by which answers took longer after it.

    Services that take longer show at all rates, servers that are lost at the higher ones only.
    """
    middle = float(np.median([each.log_rate for each in drift.after]))
    higher = [each for each in drift.after if each.log_rate >= middle]
    return max(_errors_of(drift), _errors_of(Drift(drift.before, higher)))


def _errors_of(drift: Drift) -> float:
    """The standard errors by which all later stretches together took longer.

    Each later stretch is compared with the mean of the earlier ones at its rate and above or at its rate and below,
    whichever took longer. The clearest one does not count: a burst ends its stretch early, and looks like a change.
    """
    (rates, logs, variances), (own_rates, own_logs, own) = map(_columns, (drift.before, drift.after))
    ends_s = np.array([each.stretch.end_s for each in drift.before])
    apart = np.array([each.stretch.start_s for each in drift.after])[:, None] - ends_s >= APART_S
    above, of_above = _means(apart & (rates >= own_rates[:, None]), logs, variances)
    below, of_below = _means(apart & (rates <= own_rates[:, None]), logs, variances)
    expected, of = np.maximum(above, below), np.where((below > above)[:, None], of_below, of_above)
    comparable, variance = np.isfinite(above), own + of**2 @ variances
    longer = np.where(comparable, own_logs - np.where(comparable, expected, 0.0), -np.inf)
    comparable[np.argmax(longer / np.sqrt(variance))] = False
    if not comparable.any():
        return 0.0
    weights, longer = comparable / variance, np.where(comparable, longer, 0.0)
    return float(weights @ longer / np.sqrt(weights**2 @ own + (weights @ of) ** 2 @ variances))


def _columns(seen: Sequence[StretchTime]) -> tuple[Floats, Floats, Floats]:
    """Logarithms of rates and of mean times, and variances."""
    table = np.array([each[1:] for each in seen])
    return table[:, 0], table[:, 1], table[:, 2]


def _means(which: Mask, logs: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Of each row the weighted mean of those it names, minus infinity of none; and the weights."""
    weights = which / variances
    total = weights.sum(axis=1)
    weights = weights / np.where(total > 0, total, 1.0)[:, None]
    return np.where(total > 0, weights @ logs, -np.inf), weights
