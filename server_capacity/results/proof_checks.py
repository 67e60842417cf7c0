"""The contradictions of a proof in itself. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from server_capacity.results.agreement import SAME, between
from server_capacity.results.types.result_status import inherited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.proof import ProofResult, ProvenLimit

_COUNTS = ("instances", "instance_count")


def proof_problems(found: ProofResult) -> Iterator[str]:
    """Every contradiction of the proof in itself, as a sentence."""
    if found.exit_code == 0 and found.outcome != "holds":
        yield f"its exit code is 0, but its outcome is {found.outcome.replace('_', ' ')}"
    if found.exit_code == INTERRUPTED and found.outcome != "interrupted" and found.plan_exit_code != INTERRUPTED:
        yield f"its exit code is 130, but its outcome is {found.outcome.replace('_', ' ')}"
    if found.outcome == "holds" and found.ended_early is not None:
        yield "its outcome is holds, but it ended early"
    own = (MISSED, INVALID) if found.reason else (MISSED,)
    bases = {"holds": (OK,), "fails": (MISSED,), "interrupted": (INTERRUPTED,)}.get(found.outcome, own)
    codes = {inherited(replace(found, exit_code=base)) for base in bases}
    if found.plan_exit_code is not None and found.exit_code not in codes:  # an older version inherited nothing
        code = " or ".join(map(str, sorted(codes)))
        yield f"its exit code is {found.exit_code}, but its plan or what it left behind means {code}"
    if found.outcome == "holds" and any(row.verdict != "holds" for row in found.limits):
        yield "its outcome is holds, but a limit is violated"
    if found.outcome == "holds" and found.backlog:
        yield f"its outcome is holds, but {found.backlog:,} requests were left at the end"
    yield from _of_fleet(found)
    for row in found.limits:
        yield from _of_proven(row)
        if row.interval is not None:
            yield from between(f"the share over {row.expression}", row.interval.low, None, row.interval.high)


def _of_fleet(found: ProofResult) -> Iterator[str]:
    """The instances are as many as its endpoint had, or was made with."""
    endpoint = found.endpoint
    if endpoint is None:
        return
    arguments = endpoint.arguments or {}
    for number in (endpoint.instances, *(arguments.get(name) for name in _COUNTS)):
        if isinstance(number, int) and number != found.instances:
            yield f"it is for {found.instances} instances, but its endpoint had {number}"


def _of_proven(row: ProvenLimit) -> Iterator[str]:
    """The share over a limit agrees with its verdict, and lies in its interval."""
    if row.share_over is None or row.allowed is None:
        return
    if row.verdict == "holds" and row.share_over > row.allowed + SAME:
        yield f"{row.expression} is met, but {row.share_over:g} are over it, and {row.allowed:g} may be"
    if row.verdict == "fails" and row.share_over <= row.allowed:
        yield f"{row.expression} is violated, but {row.share_over:g} are over it, and {row.allowed:g} may be"
    if row.interval is not None:
        yield from between(f"the share over {row.expression}", row.interval.low, row.share_over, row.interval.high)
