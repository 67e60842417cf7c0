"""For how long a wave's limits were missed, second by second. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.facts.stages import spans_of
from inference_benchmarker.summary.summarising import numbers
from inference_benchmarker.verdict.limits_met import slo_met
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import percent_text

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.summary import Summary

MOST_SPANS = 900
"""A longer wave than so many seconds is looked at in stretches of several seconds."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MissedTime:
    """When the requests due then missed a limit. ``spans``: starts and ends in seconds after wave start, apart.

    ``step_s``: how long the stretches are, each judged by its own requests as a stage is. ``failed``: of the requests
    due in them, those that failed or were abandoned.
    """

    limits: tuple[str, ...]
    step_s: float
    spans: tuple[Span, ...]
    failed: int

    @property
    def seconds(self) -> float:
        """Their length together."""
        return sum((end - start for start, end in self.spans), 0.0)


def missed_time(facts: WaveFacts) -> MissedTime:
    """The stretches of a wave whose requests missed the success threshold or a limit that holds for the whole wave.

    A stretch in which nothing was due missed nothing.
    """
    slos = [slo for slo in facts.plan.slos if not slo.stage]
    length_s = max(1, -(-_whole_s(facts) // MOST_SPANS))
    found, failed = [], 0
    for start, end, part in spans_of(facts, length_s * NS):
        if part.ledger.scheduled and _missed(numbers(part), slos, facts.plan.success_threshold):
            found.append((start / NS, end / NS))
            failed += part.ledger.failed + part.ledger.abandoned
    success = f"success>={percent_text(facts.plan.success_threshold)}"
    return MissedTime((success, *(slo.expression for slo in slos)), float(length_s), _joined(found), failed)


def _whole_s(facts: WaveFacts) -> int:
    return -(-max(facts.window.planned_ns or 0, facts.window.duration_ns) // NS)


def _missed(part: Summary, slos: list[Slo], threshold: float) -> bool:
    success = part.success_rate
    return success is None or success < threshold or not all(slo_met(slo, part) for slo in slos)


def _joined(spans: list[Span]) -> tuple[Span, ...]:
    """Spans that touch, as one."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]  # noqa: PLW2901 - the one before goes on
        joined.append((start, end))
    return tuple(joined)
