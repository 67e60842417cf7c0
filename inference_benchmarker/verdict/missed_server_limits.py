"""The limits on server metrics that a wave missed, and those that are waited for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.advice import or_scale
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.verdict.server.limit_checks import held_against
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.verdict.server.limit_checks import LimitCheck

_MOST_OF_A_REASON = 300


def waiting_limits(facts: WaveFacts) -> tuple[str, ...]:
    """The limits on metrics that nobody has read yet."""
    return () if facts.server_metrics is not None else tuple(limit.expression for limit in facts.plan.server_limits)


def server_limit_findings(facts: WaveFacts, side: str | None) -> Iterator[Finding]:
    """The limits that were missed; of those that were read, what the server did not report keeps none.

    ``side``: the one that was the limit, which decides the advice.
    """
    for limit in facts.plan.server_limits if facts.server_metrics is not None else ():
        held = held_against(limit, facts.server_metrics or ())
        if not held.kept:
            yield Finding("slo_missed", "missed", held.measured, limit.expression, _advice(held, side))


def _advice(held: LimitCheck, side: str | None) -> str:
    if held.kept is None:
        reason = one_line(held.reason, _MOST_OF_A_REASON)
        is_name = reason.startswith(held.limit.name)
        return f"{reason if is_name else reason[:1].upper() + reason[1:]}."
    return f"To find the rate that meets it, run benchmark capacity with this limit{or_scale(side)}."
