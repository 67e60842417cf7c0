"""Limits that no request reports, as one on tokens where nothing is streamed. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from server_capacity.search.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

REASON = "no request has the value that {} limits"
STREAMS = "; token times need a stream, that is, an invoke that yields"
OF_STREAMS = ("ttft", "itl", "tpot")
TURNS = ": sessions may have too few turns"


def unmeasured(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> set[str]:
    """The expressions of limits that no request reports, although some were answered."""
    slices = [each for stretch in stretches for each in stretch.slices if each.answered]
    if not slices:
        return set()
    return {
        limit.expression
        for place, limit in enumerate(limits)
        if limit.bound_s is not None and not any(each.counts[place].of for each in slices)
    }


def held_against(limits: Sequence[Limit], stretches: Sequence[Stretch], found: Answer) -> Answer:
    """The answer, unless a limit was never measured: that one may be violated before all others."""
    missing = unmeasured(limits, stretches)
    if not missing or found.outcome == "not_kept":
        return found
    first = next(limit for limit in limits if limit.expression in missing)
    estimates = [
        replace(each, kept_everywhere=each.kept_everywhere and each.limit not in missing) for each in found.estimates
    ]
    return Answer("cannot_tell", reason=_reason(first), estimates=tuple(estimates))


def _reason(limit: Limit) -> str:
    turns = "" if limit.turns is None else TURNS
    return f"{REASON.format(limit.expression)}{turns}{STREAMS if limit.metric in OF_STREAMS else ''}"
