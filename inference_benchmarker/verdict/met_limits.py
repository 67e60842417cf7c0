"""The limits of the user that a wave met, as its first line and its report tell them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.summary.statistics.distribution import least_count
from inference_benchmarker.verdict.limit_rows import own_limit_rows
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.summary import Summary

_LONG = 300


@dataclass(frozen=True, slots=True)
class MetLimit:
    """A limit with what was measured of it. ``too_few``: its percentile is simply the largest of so few values."""

    expression: str
    measured: str
    too_few: bool

    @property
    def text(self) -> str:
        """``p99<100ms (response time p99 21 ms)``."""
        few = ", of too few samples" if self.too_few else ""
        return f"{one_line(self.expression, _LONG)} ({one_line(self.measured, _LONG)}{few})"


def met_limits(facts: WaveFacts, summary: Summary) -> tuple[MetLimit, ...]:
    """Those of ``--slo`` that were met, in their order."""
    slos = [*facts.plan.slos, *(None for _ in facts.plan.server_limits)]
    return tuple(
        MetLimit(row.expression, row.measured, slo is not None and _of_too_few(slo, summary))
        for slo, row in zip(slos, own_limit_rows(facts, summary), strict=True)
        if row.outcome == "kept"
    )


def _of_too_few(slo: Slo, summary: Summary) -> bool:
    part = summary.part(slo)
    found = None if part is None else part.distribution(slo.metric)
    return found is not None and slo.stat[1:2].isdigit() and found.count < least_count(float(slo.stat[1:]))
