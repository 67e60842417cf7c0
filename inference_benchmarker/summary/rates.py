"""The rates of a wave: what was planned, sent and completed a second. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts, Window
    from inference_benchmarker.records.columns import Records

LATE_NS = 5_000_000  # a lag that is allowed, as the schedule lag's least limit


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a second over the planned duration T (over the real one where the plan has none).

    Where arrivals are sessions nothing says how many requests a second were planned: ``target`` and ``scheduled`` are
    None.

    ``precision``: the share by which the completed rate may be off.
    """

    target: float | None
    scheduled: float | None
    sent: float
    completed: float
    server_rps: float
    precision: float = 0.0


def rates_of(facts: WaveFacts, late: int, completed: float, precision: float = 0.0) -> Rates:
    """The rates of a wave, with how many requests were ``late`` and its completed rate, within ``precision``."""
    ledger, window = facts.ledger, facts.window
    seconds = (window.planned_ns or window.duration_ns) / NS
    duration = window.duration_ns / NS
    planned = facts.open_loop and not facts.has_sessions
    return Rates(
        target=_target(facts) if planned else None,
        scheduled=ledger.scheduled / seconds if planned and seconds else None,
        sent=(ledger.sent - late) / seconds if seconds else 0.0,
        completed=completed,
        server_rps=ledger.completed / duration if duration else 0.0,
        precision=precision,
    )


def _target(facts: WaveFacts) -> float | None:
    """The planned rate; of stages their mean up to the planned end, which may be before theirs."""
    load, planned_ns = facts.plan.load, facts.window.planned_ns
    if isinstance(load, OpenLoop) and load.stages and planned_ns:
        return float(load.schedule.area(planned_ns) * NS / planned_ns)
    return facts.plan.target_rate


class LateGathered:
    """Gathers the number of requests taken up after the end of the plan, which are not part of the sent rate."""

    columns = ("sent", "build_ns")

    def __init__(self, window: Window) -> None:
        self._planned_ns = window.planned_ns
        self.number = 0

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        if self._planned_ns is not None:
            taken_up = part.int("sent") - part.int("build_ns")
            self.number += int(np.count_nonzero(taken_up >= self._planned_ns + LATE_NS))
