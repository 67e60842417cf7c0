"""An endpoint that got slower with time: equal rates at different times, compared. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EQUAL, APART_S, LEAST_SENT = 1.03, 30.0, 100
"""Rates that differ by less are equal; so much later is another time; fewer requests tell nothing."""
FEW, MOST, GROWN = 0.01, 0.5, 0.1
"""Shares over a limit before and after, and the share of the later requests by which the backlog grew at least."""


class Slower(NamedTuple):
    """``rate`` (requests/s) had a share over the limit from ``before_s`` on, and another from ``after_s`` on."""

    rate: float
    before_s: float
    share_before: float
    after_s: float
    share_after: float


def slower(rows: Sequence[Mapping[str, Any]], judged: int) -> Slower | None:
    """The last rate that went well once and not any more; None where none did, or that rate went well again later."""
    counted = (row for row in rows if row["rate"] and not row["void"] and row["sent"] >= LEAST_SENT)
    clean = [row for row in counted if row["share_over"][judged] is not None]
    good = [row for row in clean if row["share_over"][judged] <= FEW]
    for after in reversed(clean):
        if after["share_over"][judged] < MOST or _growth(rows, after) < GROWN * after["sent"]:
            continue
        if any(row["start_s"] > after["start_s"] and row["rate"] * EQUAL >= after["rate"] for row in good):
            continue
        for before in good:
            equal = max(before["rate"], after["rate"]) <= EQUAL * min(before["rate"], after["rate"])
            if equal and after["start_s"] - before["end_s"] >= APART_S:
                shares = before["share_over"][judged], after["share_over"][judged]
                return Slower(after["rate"], before["start_s"], shares[0], after["start_s"], shares[1])
    return None


def _growth(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> int:
    """The requests in flight that a stretch added."""
    earlier = [each["in_flight"] or 0 for each in rows if each["end_s"] <= row["start_s"] + 1e-6]
    return (row["in_flight"] or 0) - (earlier[-1] if earlier else 0)
