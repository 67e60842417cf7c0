"""When a wave's load was over, as its server's gauges and rates have it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.counts import Counts
    from inference_benchmarker.records.parts import InParts

STRAGGLERS = 0.05
"""The share of the requests that may still be under way when the load is over."""

LEAST_TAIL_S, LEAST_TAIL = 1.0, 0.1
"""In seconds, and as a share of the load's time: a shorter rest dilutes nothing, so that all is of one window."""

_STEP_NS = 20_000_000


def load_end_ns(facts: WaveFacts) -> int | None:
    """The instant, in ns after wave start, from which the server had next to nothing to do; None: the wave's own end.

    It is that of the last arrival or, where that is later, the one at which all but ``STRAGGLERS`` of the requests were
    over: a queue that is worked off is load, and one answer that takes half a minute is none.
    """
    found = _of_counts(facts.counts.window) if facts.counts is not None else _of_records(facts.records)
    planned, stopped = facts.window.planned_ns, facts.window.stopped_at_ns
    if planned is not None and stopped is None:
        found = max(found, planned)
    rest = facts.window.duration_ns - found
    return found if found > 0 and rest > max(LEAST_TAIL_S * NS, LEAST_TAIL * found) else None


def _of_records(records: InParts) -> int:
    last, over = 0, np.zeros(0, np.int64)
    for part in records.parts("sent", "done"):
        last = max(last, int(part.int("sent").max()))
        steps = np.bincount(np.maximum(part.int("done"), 0) // _STEP_NS, minlength=len(over)).astype(np.int64)
        steps[: len(over)] += over
        over = steps
    return max(last, _mostly_over(over) * _STEP_NS)


def _of_counts(counts: Counts) -> int:
    """To the second."""
    over = np.zeros(counts.seconds, np.int64)
    for what in ("ok_at", "failed_at", "abandoned_at"):
        inside = counts[what].between(0, len(over))
        np.add.at(over, inside.second.astype(np.int64), inside.count.astype(np.int64))
    sent = counts["sent_at"]
    last = int(sent.second[-1]) + 1 if len(sent.second) else 0
    return max(last, _mostly_over(over)) * NS


def _mostly_over(over: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """The steps after which all but the stragglers were over, of how many were in each step."""
    total = np.cumsum(over)
    return int(np.searchsorted(total, (1 - STRAGGLERS) * total[-1])) + 1 if len(total) else 0
