"""Tells whether a wave, or a part of it, kept a limit. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.statistics.streaming_histogram import PRECISION

if TYPE_CHECKING:
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.summary import Summary


def slo_met(slo: Slo, part: Summary) -> bool:
    """Tells whether a wave or a stage of it kept a limit.

    Not by the age of requests that nobody waited for, nor by a value that cannot be distinguished from the limit.
    """
    kept = slo.met(part.measured(slo.metric, slo.stat))
    return kept and not may_be_longer(slo, part) and not unclear_within(slo, part)


def unclear_within(slo: Slo, part: Summary) -> float:
    """The share of a limit within which its value was counted, where it is that near the limit; else 0."""
    if slo.metric == "rate":
        return _near(slo, part.completed_share, part.rates.precision)
    distribution = part.distribution(slo.metric)
    ends_are_exact = distribution is None or distribution.precision <= PRECISION
    if distribution is None or slo.stat == "mean" or (slo.stat in ("min", "max") and ends_are_exact):
        return 0.0
    return _near(slo, distribution.statistic(slo.stat), distribution.precision)


def _near(slo: Slo, value: float | None, precision: float) -> float:
    near = value is not None and abs(value - slo.limit) <= precision * max(abs(value), abs(slo.limit))
    return precision if near else 0.0


def may_be_longer(slo: Slo, summary: Summary) -> bool:
    """Tells whether the value is the age of an abandoned request: it does not show that an upper limit was kept."""
    distribution = summary.distribution(slo.metric)
    if distribution is None or slo.op in (">", ">="):
        return False
    if slo.stat == "mean":
        return distribution.lower_bound_from is not None
    return distribution.is_lower_bound(distribution.statistic(slo.stat))
