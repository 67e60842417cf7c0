"""The limits of the user that a wave met, as its first line and its report tell them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.limit_rows import own_limit_rows
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
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
        return f"{one_line(self.expression, _LONG)} ({one_line(self.measured, _LONG)})"


def met_limits(facts: WaveFacts, summary: Summary) -> tuple[MetLimit, ...]:
    """Those of ``--slo`` that were met, in their order."""
    return tuple(
        MetLimit(row.expression, row.measured, row.too_few)
        for row in own_limit_rows(facts, summary)
        if row.outcome == "kept"
    )
