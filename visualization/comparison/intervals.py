"""The distance of one run's metrics from those of the same load without end: estimates from one-second blocks.

Requests that are neighbours in time are not independent (a queue, a pause, a cache): what is drawn again and again
is a second of load. So each metric is written as a ratio of sums over seconds, and its error follows from how
those sums vary from second to second. What varies between runs (another machine, another day) is in none of it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.facts.turns import of_turns
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.statistics.student_t import student_t
from visualization.comparison.blocks import Completed, Seconds
from visualization.comparison.estimates import Estimate, Percentile, Ratio, least_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Turns
    from inference_benchmarker.records.columns import Floats
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.repeats import Repeated

Metric = tuple[str, str]
"""A metric and its statistic, as in an SLO; rate, success and tokens stand for both."""

CONFIDENCE = 0.95
RULE_OF_THREE = 3.0  # Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249, 1983
_MOST_CORRELATION = 0.95  # a run that drifts from end to end has an error, if a large one


def interval(estimate: Estimate | Repeated, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """A confidence interval of a metric; None where there are too few runs, blocks or records to bound it."""
    if not estimate.has_error:
        return None
    low, high = estimate.ends(student_t(confidence, estimate.freedom))
    return None if math.isinf(high) or math.isinf(low) else (low, high)


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
    """Metrics of one run with their errors, by their names in an SLO, e.g. ("ttft", "p90").

    ``rate`` is the completed rate; ``tokens`` are output tokens a second. Of the times, and of metrics of the
    user's own (("metric.cache_hit", "mean")), ``mean`` and percentiles.

    ``turns``: of these turns of sessions alone, of which some were sent.

    Where the rate changed by plan the seconds differ by more than chance: no block of them tells an error.
    """

    def __init__(self, wave: Wave, wanted: Iterable[Metric], turns: Turns | None = None) -> None:
        facts: WaveFacts = wave if turns is None else of_turns(wave, turns)
        summary = wave.summary if turns is None else wave.summary.of_turns[turns]
        self._facts, self._summary = facts, summary
        limits: defaultdict[str, set[float]] = defaultdict(set)
        for metric, stat in wanted:
            if (distribution := summary.distribution(metric)) is not None:
                limits[self._time(metric)] |= set() if stat == "mean" else {distribution.statistic(stat)}
        self._seconds = Seconds(facts, limits)
        self._completed = Completed(summary.completed_span, tokens=summary.tokens is not None)
        if facts.counts is None:
            gather(facts.records, self._seconds, self._completed)
            gather(facts.begun_before, self._completed)
        else:
            self._seconds.add_counts(facts.counts.window)
            self._completed.add_counts(facts.counts.window)

    def of(self, metric: str, stat: str) -> Estimate | None:
        """The estimate of one that was wanted; None where it was not measured."""
        alone = {"rate": self._rate, "success": self._success, "tokens": self._tokens}
        if metric in alone:
            return alone[metric]()
        distribution = self._summary.distribution(metric)
        if distribution is None:
            return None
        values = self._seconds.times[self._time(metric)]
        blocks = self._usable(len(values.counts))
        if stat == "mean":
            aged = distribution.lower_bound_from is not None
            error = error_of(values.sums, values.counts)
            return Ratio(distribution.mean, error, blocks, aged, least=least_of(distribution))
        percent = float(stat[1:])
        below = values.at_most(distribution.percentile(percent))
        return Percentile(distribution, percent, error_of(below, values.counts), blocks)

    def _time(self, metric: str) -> str:
        """The name of its sample."""
        if metric != "default":
            return metric
        return "latency" if self._summary.response_time is None else "response_time"

    def _rate(self) -> Estimate:
        return self._ratio(self._summary.rates.completed, self._completed.requests)

    def _tokens(self) -> Estimate | None:
        tokens = self._summary.tokens
        if tokens is None or tokens.tokens_out_per_s is None:
            return None
        return self._ratio(tokens.tokens_out_per_s, self._completed.tokens)

    def _ratio(self, rate: float, sums: Floats) -> Ratio:
        """A rate of the completed requests, or of what they weigh."""
        lengths = self._completed.lengths
        return Ratio(rate, error_of(sums, lengths), self._usable(len(lengths)))

    def _success(self) -> Estimate | None:
        rate = self._summary.success_rate
        if rate is None:
            return None
        ok, sent = self._seconds.ok, self._seconds.sent
        error, blocks = error_of(ok[sent > 0], sent[sent > 0]), self._usable(int(np.count_nonzero(sent)))
        return Ratio(rate, error, blocks, most=1.0, unseen=RULE_OF_THREE / self._summary.ledger.sent)

    def _usable(self, blocks: int) -> int:
        """As many blocks as show an error: all of them, or none."""
        return blocks if blocks_show_error(self._facts) else 0


def blocks_show_error(facts: WaveFacts) -> bool:
    """Tells whether the differences of a wave's blocks show an error: where the rate changed by plan, they do not."""
    load = facts.plan.load
    return load.is_steady if isinstance(load, OpenLoop) else True


def error_of(above: Floats, below: Floats) -> float:
    """The same as ``ratio_error``; 0 where there is nothing."""
    return ratio_error(above, below) if below.sum() else 0.0


_STATS = ("mean", "p50", "p99")


def user_metrics_of(waves: Iterable[Wave]) -> list[Metric]:
    """The metrics that any of these waves has, each with the statistics to compare."""
    names = sorted({name for wave in waves for name in wave.summary.metrics})
    return [(PREFIX + name, stat) for name in names for stat in _STATS]
