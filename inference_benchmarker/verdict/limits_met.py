"""Tells whether a wave, or a part of it, kept a limit. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.summary import Summary


def slo_met(slo: Slo, part: Summary) -> bool:
    """Tells whether a wave or a stage of it kept a limit: not by the age of requests that nobody waited for."""
    return slo.met(part.measured(slo.metric, slo.stat)) and not may_be_longer(slo, part)


def may_be_longer(slo: Slo, summary: Summary) -> bool:
    """Tells whether the value is the age of an abandoned request: it does not show that an upper limit was kept."""
    distribution = summary.distribution(slo.metric)
    if distribution is None or slo.op in (">", ">="):
        return False
    if slo.stat == "mean":
        return distribution.lower_bound_from is not None
    return distribution.is_lower_bound(distribution.statistic(slo.stat))
