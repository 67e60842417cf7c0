"""Each limit of the user's with what was measured, kept or not: what reports tell beside the findings. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.summary.statistics.distribution import least_count
from inference_benchmarker.verdict.limits_met import may_be_longer, slo_met
from inference_benchmarker.verdict.missed_limits import slo_value
from inference_benchmarker.verdict.server.limit_checks import held_against
from inference_benchmarker.words.wording import percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.server_limit import ServerLimit
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.summary import Summary

Outcome = Literal["kept", "missed", "pending"]
MARKS: dict[Outcome, str] = {"kept": "✓", "missed": "✗", "pending": "…"}


@dataclass(frozen=True, slots=True)
class CheckedLimit:
    """One limit: as it was given, what was measured of it, and what came of it. ``pending`` waits for the server.

    ``too_few``: it is kept by a percentile that is simply the largest of so few values, as ``measured`` says.
    """

    expression: str
    measured: str
    outcome: Outcome
    too_few: bool = False

    @property
    def mark(self) -> str:
        """The sign of its outcome: ✓, ✗ or …."""
        return MARKS[self.outcome]


def limit_rows(facts: WaveFacts, summary: Summary) -> list[CheckedLimit]:
    """The success threshold, then each ``--slo`` in its order: those on the client's numbers before the server's."""
    return [*_success(facts, summary), *own_limit_rows(facts, summary)]


def own_limit_rows(facts: WaveFacts, summary: Summary) -> list[CheckedLimit]:
    """Those of ``--slo`` alone, in the same order."""
    ours = (_ours(slo, summary) for slo in facts.plan.slos)
    return [*ours, *(_of_server(limit, facts) for limit in facts.plan.server_limits)]


def _success(facts: WaveFacts, summary: Summary) -> Iterator[CheckedLimit]:
    target, share = facts.plan.success_threshold, summary.success_rate
    if share is not None:
        outcome: Outcome = "kept" if share >= target and share else "missed"
        text = f"success rate {percent_text(share, target)}"
        yield CheckedLimit(f"success>={100 * target:g}%", text, outcome)


def _ours(slo: Slo, summary: Summary) -> CheckedLimit:
    part = summary.part(slo)
    if part is None:
        return CheckedLimit(slo.expression, slo_value(slo, None, "", None), "missed")
    mark = "≥" if may_be_longer(slo, part) else ""
    measured = slo_value(slo, part.measured(slo.metric, slo.stat), mark, part)
    if not slo_met(slo, part):
        return CheckedLimit(slo.expression, measured, "missed")
    too_few = _of_too_few(slo, part)
    return CheckedLimit(slo.expression, measured + (", of too few samples" if too_few else ""), "kept", too_few)


def _of_too_few(slo: Slo, part: Summary) -> bool:
    found = part.distribution(slo.metric)
    return found is not None and slo.stat[1:2].isdigit() and found.count < least_count(float(slo.stat[1:]))


def _of_server(limit: ServerLimit, facts: WaveFacts) -> CheckedLimit:
    if facts.server_metrics is None:
        return CheckedLimit(limit.expression, "waits for the server's metrics", "pending")
    held = held_against(limit, facts.server_metrics)
    return CheckedLimit(limit.expression, held.measured, "kept" if held.kept else "missed")
