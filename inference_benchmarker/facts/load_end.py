"""When a wave's load was over, as its server's gauges and rates have it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.counts import Counts
    from inference_benchmarker.records.parts import InParts

LEAST_TAIL_S, LEAST_TAIL = 1.0, 0.1
"""In seconds, and as a share of the load's time: a shorter rest dilutes nothing, so that all is of one window."""

_STEP_NS = 20_000_000

Steps = np.ndarray[tuple[int], np.dtype[np.int64]]
"""How many there were in each step of the same length, from wave start."""


def load_end_ns(facts: WaveFacts) -> int | None:
    """The instant, in ns after wave start, from which the server had less and less to do; None: the wave's own end.

    It is that of the last arrival, a later turn of a session included (of the warm-up's, too), or of the planned end:
    with a queue, the server is as busy before it as after. A burst is over before most of its work is done. Where the
    arrivals took less than twice as long as a request, the load goes on for as long as a request takes. So long is the
    median, which a few late answers do not move: half of the requests were sent, and so much later half were over.
    """
    counts = facts.counts
    sent, over, step_ns = _of_records(facts.records) if counts is None else _of_counts(counts.window)
    planned, stopped = facts.window.planned_ns, facts.window.stopped_at_ns
    last = max(len(sent) * step_ns, _last_of_warmup(facts))
    if planned is not None and stopped is None:
        last = max(last, planned)
    request = (_half(over) - _half(sent)) * step_ns
    found = last + request if last < 2 * request else last
    rest = facts.window.duration_ns - found
    return found if found > 0 and rest > max(LEAST_TAIL_S * NS, LEAST_TAIL * found) else None


def _last_of_warmup(facts: WaveFacts) -> int:
    """The end of the step in which the warm-up's last request was sent, in ns; of none, or before the wave, 0."""
    if facts.counts is not None:
        seconds = facts.counts.warmup["sent_at"].second
        return max(0, (int(seconds.max()) + 1) * NS) if len(seconds) else 0
    last = max((int(part.int("sent").max()) for part in facts.warmup.parts("sent")), default=-1)
    return (last // _STEP_NS + 1) * _STEP_NS if last >= 0 else 0


def _of_records(records: InParts) -> tuple[Steps, Steps, int]:
    sent, over = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for part in records.parts("sent", "done"):
        sent, over = _with(sent, part.int("sent")), _with(over, part.int("done"))
    return sent, over, _STEP_NS


def _with(steps: Steps, times: Steps) -> Steps:
    added = np.bincount(np.maximum(times, 0) // _STEP_NS, minlength=len(steps)).astype(np.int64)
    added[: len(steps)] += steps
    return added


def _of_counts(counts: Counts) -> tuple[Steps, Steps, int]:
    """To the second."""
    sent, over = np.zeros(counts.seconds, np.int64), np.zeros(counts.seconds, np.int64)
    for what, steps in (("sent_at", sent), ("ok_at", over), ("failed_at", over), ("abandoned_at", over)):
        inside = counts[what].between(0, len(steps))
        np.add.at(steps, inside.second.astype(np.int64), inside.count.astype(np.int64))
    return np.trim_zeros(sent, "b"), over, NS


def _half(steps: Steps) -> int:
    """The step in which half of them had been."""
    total = np.cumsum(steps)
    return int(np.searchsorted(total, total[-1] / 2)) if len(total) else 0
