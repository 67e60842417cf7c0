"""The distance of one run's metrics from those of the same load without end: estimates from one-second blocks.

Requests that are neighbours in time are not independent (a queue, a pause, a cache): what is drawn again and again
is a second of load. So each metric is written as a ratio of sums over seconds, and its error follows from how
those sums vary from second to second. What varies between runs (another machine, another day) is in none of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.records.arrow import numbers
from inference_benchmarker.summary.completed_rate import completed_span
from inference_benchmarker.summary.request_times import output_tokens
from inference_benchmarker.summary.samples import Sample, Streams, samples
from inference_benchmarker.summary.student_t import student_t
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records
    from inference_benchmarker.summary.distribution import Distribution
    from inference_benchmarker.wave.wave import Wave

LEAST_BLOCKS = 20
CONFIDENCE = 0.95
_MOST_CORRELATION = 0.95  # a run that drifts from end to end has an error, if a large one


@dataclass(frozen=True, slots=True)
class Ratio:
    """A mean, rate or share: its value, its standard error, from how many blocks; a share is 1 at the most."""

    value: float
    error: float
    blocks: int
    is_lower_bound: bool = False
    most: float = math.inf

    def ends(self, t: float) -> tuple[float, float]:
        """``t`` standard errors to either side; infinite where the records do not bound it."""
        high = math.inf if self.is_lower_bound else min(self.value + t * self.error, self.most)
        return max(self.value - t * self.error, 0.0), high


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile: its error is that of the share of values at or below it.

    Its ends are the percentiles of the shares that lie so many errors below and above (Woodruff, "Confidence
    intervals for medians and other position measures", JASA 47, 1952).
    """

    distribution: Distribution
    percent: float
    error: float
    blocks: int

    @property
    def value(self) -> float:
        """In seconds."""
        return self.distribution.percentile(self.percent)

    @property
    def is_lower_bound(self) -> bool:
        """Tells whether it is the age of an abandoned request."""
        return self.distribution.is_lower_bound(self.value)

    def ends(self, t: float) -> tuple[float, float]:
        """The values ``t`` errors of the share to either side; 0 and infinity where there are no such shares."""
        low, high = (self.percent + 100 * side * t * self.error for side in (-1, 1))
        top = self.distribution.percentile(high) if high < 100 else math.inf
        bounded = not self.distribution.is_lower_bound(top)
        return self.distribution.percentile(low) if low > 0 else 0.0, top if bounded else math.inf


Estimate = Ratio | Percentile


def interval(estimate: Estimate, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """A confidence interval of one run's metric; None where there are too few blocks or records to bound it."""
    if estimate.blocks < LEAST_BLOCKS:
        return None
    low, high = estimate.ends(student_t(confidence, estimate.blocks - 1))
    return None if math.isinf(high) else (low, high)


def ratio_error(above: Floats, below: Floats) -> float:
    """The standard error of sum(above) / sum(below), from the two sums in each block.

    The variance of a ratio is that of the residuals' sum (Cochran, "Sampling techniques", 1977, 6.4). It is
    raised by (1 + r) / (1 - r), r the residuals' correlation from one block to the next where that is positive:
    so many fewer blocks would say the same if they were independent (Bayley and Hammersley, "The effective number
    of independent observations in an autocorrelated time series", 1946).
    """
    blocks, total = len(above), float(below.sum())
    residuals = above - below * (above.sum() / total)
    squares = float(residuals @ residuals)
    if blocks < 2 or not squares:
        return 0.0
    correlation = min(max(float(residuals[1:] @ residuals[:-1]) / squares, 0.0), _MOST_CORRELATION)
    return math.sqrt(squares * blocks / (blocks - 1) * (1 + correlation) / (1 - correlation)) / total


class Estimates:
    """The metrics of one run with their errors, each worked out when it is asked for.

    Where the rate changed by plan the seconds differ by more than chance: no block of them tells an error.
    """

    def __init__(self, wave: Wave) -> None:
        self._wave = wave
        self._samples: dict[str, _Blocks] = {}

    def of(self, metric: str, stat: str) -> Estimate | None:
        """An estimate by its name in an SLO, e.g. ("ttft", "p90"); None when it was not measured.

        ``rate`` is the completed rate; ``tokens`` are output tokens a second. Of the times, ``mean`` and percentiles.
        """
        alone = {"rate": self._rate, "success": self._success, "tokens": self._tokens}
        if metric in alone:
            return alone[metric]()
        distribution = self._wave.summary.distribution(metric)
        if distribution is None:
            return None
        if metric == "default":
            metric = "latency" if self._wave.summary.response_time is None else "response_time"
        blocks = self._blocks(metric)
        if stat == "mean":
            aged = distribution.lower_bound_from is not None
            return Ratio(distribution.mean, blocks.mean_error(), self._telling(len(blocks.counts)), aged)
        percent = float(stat[1:])
        error = blocks.share_error(distribution.percentile(percent))
        return Percentile(distribution, percent, error, self._telling(len(blocks.counts)))

    def _blocks(self, metric: str) -> _Blocks:
        if not self._samples:
            records = self._wave.records
            found = samples(records, open_loop=self._wave.open_loop, streams=Streams.of(records))
            self._samples = {name: _Blocks(_values(sample), self._seconds_of(name, sample)) for name, sample in found}
        return self._samples[metric]

    def _rate(self) -> Estimate:
        return self._completed(self._wave.summary.rates.completed)

    def _success(self) -> Estimate | None:
        rate = self._wave.summary.success_rate
        if rate is None:
            return None
        sent = _sums(self._second, len(self._lengths))
        ok = _sums(self._second[self._wave.records.outcome("ok")], len(self._lengths))
        return Ratio(rate, _error(ok[sent > 0], sent[sent > 0]), self._telling(int(np.count_nonzero(sent))), most=1.0)

    def _tokens(self) -> Estimate | None:
        tokens = self._wave.summary.tokens
        if tokens is None or tokens.tokens_out_per_s is None:
            return None
        return self._completed(tokens.tokens_out_per_s, output_tokens(self._wave.records))

    def _completed(self, rate: float, weights: Int64 | None = None) -> Ratio:
        """A rate of the completed requests, or of what they weigh, in seconds of the completed rate's interval."""
        records = self._wave.records
        span = completed_span(records, self._wave.window)
        inside = records.outcome("ok") & span.holds(records.int("done"))
        lengths = _lengths(span.seconds)
        done = records.int("done")[inside]
        weighed = None if weights is None else weights[inside]
        counts = _sums(_block(done - span.begin_ns, len(lengths)), len(lengths), weighed)
        return Ratio(rate, _error(counts, lengths), self._telling(len(lengths)))

    def _telling(self, blocks: int) -> int:
        """As many blocks as tell an error: all of them, or none."""
        load = self._wave.plan.load
        return 0 if isinstance(load, OpenLoop) and not load.is_steady else blocks

    @cached_property
    def _lengths(self) -> Floats:
        window = self._wave.window
        return _lengths((window.planned_ns or window.duration_ns) / NS)

    @cached_property
    def _second(self) -> Int64:
        """The block of each record: the second it was due in, in the closed loop sent in."""
        instants = self._wave.records.int("due" if self._wave.open_loop else "sent")
        return _block(instants, len(self._lengths))

    def _seconds_of(self, name: str, sample: Sample) -> Int64:
        """The block of each value of a sample."""
        measured = self._second[sample.measured_in]
        if name == "itl":
            measured = np.repeat(measured, _gap_counts(self._wave.records, sample.measured_in))
        return np.concatenate((measured, self._second[sample.aged_in]))


class _Blocks:
    """The values of one time and the second that each belongs to; seconds without any are left out."""

    def __init__(self, values: Floats, seconds: Int64) -> None:
        self._values = values
        self._seconds = seconds
        self._all = _sums(seconds, int(seconds.max(initial=-1)) + 1)
        self.counts = self._all[self._all > 0]

    def mean_error(self) -> float:
        return _error(self._present(self._seconds, self._values), self.counts)

    def share_error(self, limit: float) -> float:
        """Of the share of values at or below a limit."""
        return _error(self._present(self._seconds[self._values <= limit]), self.counts)

    def _present(self, seconds: Int64, weights: npt.NDArray[np.generic] | None = None) -> Floats:
        return _sums(seconds, len(self._all), weights)[self._all > 0]


def _values(sample: Sample) -> Floats:
    return np.concatenate((sample.measured, sample.ages))


def _gap_counts(records: Records, where: Mask) -> Int64:
    import pyarrow.compute as pc

    gaps = records.table.column("gaps")
    counts: Int64 = numbers(pc.list_value_length(gaps)).astype(np.int64)[where]
    return counts


def _lengths(seconds: float) -> Floats:
    """The lengths of a run's blocks: whole seconds; a fraction at the end belongs to the last one."""
    blocks = max(int(round(seconds, 6)), 1)
    lengths = np.ones(blocks)
    lengths[-1] += seconds - blocks
    return lengths


def _block(instants: npt.NDArray[np.generic], blocks: int) -> Int64:
    seconds: Int64 = np.clip(instants // NS, 0, blocks - 1).astype(np.int64)
    return seconds


def _sums(blocks: Int64, size: int, weights: npt.NDArray[np.generic] | None = None) -> Floats:
    """The sum of the weights in each block; without weights, how many there are."""
    sums: Floats = np.bincount(blocks, weights, size).astype(np.float64)
    return sums


def _error(above: Floats, below: Floats) -> float:
    return ratio_error(above, below) if below.sum() else 0.0
