"""The bytes of disk that a wave's records take, as far as its plan says. Pure.

Streams are not known before: each takes 44 bytes more, and each gap between its pieces 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.plan.conversation import TurnCount
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.records.batch import BASE, TURN
from inference_benchmarker.records.counting import MOST_SLOWEST

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

_BY_URL = ("conversations", "factories_by_url.py")
REPORTED_BYTES = BASE.size
STORED_BYTES = 20
COUNTED_BYTES, COUNTED_STORED_BYTES = 20_000, 1_500
"""Of a request in the spool, without what is said of a batch, and in ``requests.parquet``, where 5 to 10 were measured;
of a worker's second and a second of the wave where requests are counted."""


def stored(spooled: int) -> int:
    """The bytes that a wave's stored file will take beside a spool of so many."""
    return spooled * STORED_BYTES // REPORTED_BYTES


@dataclass(frozen=True, slots=True)
class Room:
    """``least``: bytes without which the wave cannot be written down. ``likely``: with the stored file beside them."""

    requests: int
    least: int
    likely: int


def room(plan: WavePlan) -> Room | None:
    """The room for a plan's requests; None where it does not say how many there will be."""
    if plan.counts_requests:
        return _room_for_counts(plan)
    load, number = plan.load, plan.bounds.num_requests
    most = None if load.is_steered else TokenBucket.of(plan).most_arrivals()
    if most is None:
        return None
    turns = turns_of(plan)
    each_bytes = REPORTED_BYTES + (TURN.size if turns is not None else 0)
    if isinstance(load, OpenLoop):
        least = most if load.arrivals == "constant" else max(most - 20 * math.isqrt(most) - 20, 0)
    else:
        least = most if number is not None and plan.bounds.duration_ns is None else 0
    requests = int(most * (turns or 1))
    return Room(requests, each_bytes * least, (each_bytes + STORED_BYTES) * requests)


def turns_of(plan: WavePlan) -> float | None:
    """The mean number of turns of a session, where the plan gives it; a session that fails has fewer."""
    recorded = None if plan.conversations is None else plan.conversations.recorded
    if recorded is not None:
        return recorded.turns / recorded.conversations
    setting = plan.factory_settings.get("TURNS")
    is_ours = plan.factories_file is not None and plan.factories_file.parts[-2:] == _BY_URL
    return TurnCount.parse(setting).average if setting is not None and is_ours else None


def _room_for_counts(plan: WavePlan) -> Room | None:
    """The room for counts: it grows with the length of the wave, not with its requests."""
    most, seconds = None if plan.load.is_steered else TokenBucket.of(plan).most_arrivals(), plan.expected_s
    if most is None or seconds is None:
        return None
    spool, slowest = COUNTED_BYTES * plan.workers * seconds, (REPORTED_BYTES + STORED_BYTES) * MOST_SLOWEST
    return Room(most, 0, math.ceil(spool + COUNTED_STORED_BYTES * seconds + slowest))
