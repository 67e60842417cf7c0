"""The row of a tier, and the contradictions of several of them in themselves. Pure.

A tier's row says what its search found, and nothing else: the search's own folder has the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INVALID, OK, worst_exit_code
from inference_benchmarker.words.redact import quoted
from server_capacity.results.agreement import between
from server_capacity.results.types.result_status import FAILED, is_after_overload, is_unsaved, left_open_by, standing
from server_capacity.results.types.tiers import TierRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.tiers import TiersResult


def tier_row(tier: str, folder: str, found: CapacityResult) -> TierRow:
    """The row of a tier that was searched."""
    at_least, status = None if found.at_least is None else found.at_least.rate, standing(found)
    return TierRow(
        tier=tier,
        limits=[row.expression for row in found.limits],
        capacity=folder,
        outcome=found.outcome,
        headline=found.headline,
        rate=found.rate if found.interval else at_least,
        interval=found.interval,
        limit=found.limit,
        load_s=found.load_s,
        shared_s=found.shared_s,
        shared_void_s=found.shared_void_s,
        after_overload=True if is_after_overload(found) else None,
        ended=status.ended,
        confirmed=status.confirmed,
        exit_code=worst_exit_code(status.exit_code, INVALID if is_unsaved(found) else OK),
        warnings=list(left_open_by(found)),
    )


def tiers_problems(found: TiersResult) -> Iterator[str]:
    """Every contradiction in itself, as a sentence."""
    if not found.rows:
        yield "it has no tier"
        return
    names = [row.tier for row in found.rows]
    if len(set(names)) < len(names):
        yield "two of its tiers have one name"
    worst = worst_exit_code(*(row.exit_code for row in found.rows))
    if found.exit_code != worst:
        yield f"its exit code is {found.exit_code}, and the gravest of its tiers {worst}"
    for row in found.rows:
        if row.interval is not None:
            yield from between(f"the rate of {row.tier}", row.interval.low, row.rate, row.interval.high)
        if row.capacity is None and (row.outcome != FAILED or row.exit_code == 0):
            yield f"{row.tier} has an outcome, but no search"
        if row.capacity is not None and ("/" in row.capacity or row.capacity in ("", ".", "..")):
            yield f"{quoted(row.capacity, 40)} is not a folder below this one"
