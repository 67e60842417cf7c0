"""The workers of a wave as the primary knows them: why it cannot start with them, and what each may have in flight."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inference_benchmarker.plan.plan import DEFAULT_MAX_IN_FLIGHT
from inference_benchmarker.records.record import Ledger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.plan.plan import WavePlan


@dataclass(slots=True)
class Member:
    """One worker as the primary knows it."""

    client_id: str = ""
    pid: int = 0
    payloads: int | None = None
    in_turn: bool = False
    descriptors: int = 0
    error: dict[str, str] | None = None
    next_sequence: int = 0
    last_report: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    ready: bool = False
    over: bool = False
    overdue: bool = False


def problems(members: Sequence[Member]) -> list[dict[str, Any]]:
    """Why the wave cannot start; the same reason from several workers is one."""
    same = {member.error["message"]: member.error for member in members if member.error}
    found: list[dict[str, Any]] = list(same.values())
    for number, member in enumerate(members):
        if member.over:
            found.append({"message": f"Worker {number} ended before it was ready.", "hint": "", "ended": number})
    counts = {member.payloads for member in members if member.ready and not member.error}
    if len(counts) > 1:
        found.append(
            {
                "message": f"payload_factory returned lists of different lengths in different workers: "
                f"{', '.join(str(count) for count in sorted(counts, key=str))}.",
                "hint": "Arrival i sends payload i mod n in whichever worker: make the list the same everywhere.",
            }
        )
    return found


def caps(plan: WavePlan, members: Sequence[Member]) -> list[int]:
    """The number of requests that each worker may have in flight."""
    workers = plan.workers
    total = plan.max_in_flight or DEFAULT_MAX_IN_FLIGHT
    shares = [max(1, len(range(number, total, workers))) for number in range(workers)]
    if plan.max_in_flight is not None:
        return shares
    return [min(share, member.descriptors) for share, member in zip(shares, members, strict=True)]
