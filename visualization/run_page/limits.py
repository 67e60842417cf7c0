"""The limits of a plan as lines in the pictures of times. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.limits_met import slo_met
from visualization.run_page.figure_types import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.summary import Summary

SHARES = ("success", "rate", "goodput")


def time_limits(facts: WaveFacts, summary: Summary, *metrics: str) -> Iterator[tuple[Slo, Level]]:
    """The limits on a statistic of these times, each as a line in seconds; ``default`` is what a bare p99 is of."""
    bare = "latency" if summary.response_time is None else "response_time"
    for slo in facts.plan.slos:
        metric = bare if slo.metric == "default" else slo.metric
        if metric in metrics and metric not in SHARES and not slo.is_on_sessions:
            part = summary.part(slo)
            missed = part is None or not slo_met(slo, part)
            yield slo, Level(slo.limit, slo.expression, missed, _nines(slo.stat))


def _nines(stat: str) -> float | None:
    """The place of a percentile on an axis of nines; None of a mean."""
    percent = float(stat[1:]) if stat[1:2].isdigit() else None
    return None if percent is None else -math.log10(1 - percent / 100)
