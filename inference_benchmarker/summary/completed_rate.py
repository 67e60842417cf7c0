"""Which requests count in a rate of completed ones, and over which time. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import Window
    from inference_benchmarker.records.columns import Mask, Records


def completed_span(records: Records, which: Mask, window: Window) -> tuple[float, float]:
    """The interval of a completed rate, in ns: [m - h, T + m - h), m ``which``'s median latency, h half the mean gap.

    Shifted by m, so that neither the first answer's delay nor one straggler moves it; by h, so that a jitter of
    less than the gap does not either. A drain that was cut short ends the interval, and it is that much shorter.
    Without T, or a request to count, it is the whole duration.
    """
    if not window.planned_ns or not which.any():
        return 0.0, float(window.duration_ns)
    median = float(np.median(records.int("done")[which] - records.int("sent")[which]))
    shift = median - window.planned_ns / len(records) / 2
    end = window.planned_ns + shift
    cut = records.int("done")[records.outcome("abandoned")]
    return shift, min(end, float(cut.min())) if len(cut) else end


def completed_requests(records: Records, which: Mask, window: Window) -> tuple[Mask, float]:
    """Those of some requests that were done in the interval of their completed rate, and its length in seconds."""
    begin, end = completed_span(records, which, window)
    done = records.int("done")
    inside = which & (done >= begin)
    if window.planned_ns:
        inside &= done < end
    return inside, max(end - begin, 0.0) / NS
