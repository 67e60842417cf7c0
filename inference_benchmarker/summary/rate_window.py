"""The time that a wave's rates are of. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.records.columns import ROW_KEY

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts, Window


def rate_window(facts: WaveFacts) -> Window:
    """The wave's window; of a number of sessions in the closed loop it ends when the last of them began.

    From then on fewer and fewer are open, for as long as the longest of them lasts: a rate over that time is of no
    concurrency. The window stays whole where that was more than half of it, as it is of few sessions.
    """
    window = facts.window
    if window.planned_ns is not None or facts.open_loop or not facts.has_sessions:
        return window
    last = max(
        (int(part.int("due")[part.firsts].max(initial=0)) for part in facts.records.parts(*ROW_KEY, "due")), default=0
    )
    return replace(window, planned_ns=last) if 2 * last >= window.duration_ns > 0 else window
