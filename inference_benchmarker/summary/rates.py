"""The rates of a wave: what was planned, sent and completed a second. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts, Window
    from inference_benchmarker.records.columns import Mask, Records

LATE_NS = 5_000_000  # a lag that is allowed, as the schedule lag's least limit
_SENT = ("due", "sent", "build_ns")


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a second over the planned duration T (over the real one where the plan has none).

    Where arrivals are sessions nothing says how many requests a second were planned: ``target`` and ``scheduled`` are
    None. The other rates are what the server had: they also count what sessions of the warm-up sent or had answered.

    ``precision``: the share by which the completed rate may be off. ``over_s``: of sessions, the time that those sent
    and completed are over.
    """

    target: float | None
    scheduled: float | None
    sent: float
    completed: float
    server_rps: float
    precision: float = 0.0
    over_s: float | None = None


def rates_of(
    facts: WaveFacts, late: int, completed: float, precision: float = 0.0, before: BegunBefore | None = None
) -> Rates:
    """The rates of a wave, with how many requests were ``late`` and its completed rate, within ``precision``.

    ``before``: what sessions that began before it add, and the window of the rates.
    """
    ledger = facts.ledger
    window = facts.window if before is None else before.window
    seconds = (window.planned_ns or window.duration_ns) / NS
    duration = window.duration_ns / NS
    sent, answered = (0, 0) if before is None else (before.sent, before.answered)
    planned = facts.open_loop and not facts.has_sessions
    return Rates(
        target=_target(facts) if planned else None,
        scheduled=ledger.scheduled / seconds if planned and seconds else None,
        sent=(ledger.sent - late + sent) / seconds if seconds else 0.0,
        completed=completed,
        server_rps=(ledger.completed + answered) / duration if duration else 0.0,
        precision=precision,
        over_s=seconds if facts.has_sessions else None,
    )


def _target(facts: WaveFacts) -> float | None:
    """The planned rate; of stages their mean up to the planned end, which may be before theirs."""
    load, planned_ns = facts.plan.load, facts.window.planned_ns
    if isinstance(load, OpenLoop) and load.stages and planned_ns:
        return float(load.schedule.area(planned_ns) * NS / planned_ns)
    return facts.plan.target_rate


class LateGathered:
    """Gathers the number of requests of after the end of the plan, which are not part of the sent rate.

    They were due after it, as later turns of sessions are, or were taken up too late.
    """

    columns = _SENT

    def __init__(self, window: Window) -> None:
        self._window = window
        self.number = 0

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        self.number += int(np.count_nonzero(_is_late(part, self._window)))


class BegunBefore:
    """Gathers what sessions that began before a window add to it: requests sent in it, and those answered in it."""

    columns = (*_SENT, "done", "outcome")

    def __init__(self, window: Window) -> None:
        self.window = window
        self.sent = self.answered = 0

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        due, done, end = part.int("due"), part.int("done"), self.window.duration_ns
        within = (due >= 0) & (due < (self.window.planned_ns or end))
        answered = (done >= 0) & (done <= end) & ~part.outcome("abandoned")
        self.sent += int(np.count_nonzero(within & ~_is_late(part, self.window)))
        self.answered += int(np.count_nonzero(answered))


def _is_late(part: Records, window: Window) -> Mask:
    if window.planned_ns is None:
        return np.zeros(len(part), bool)
    taken_up = part.int("sent") - part.int("build_ns")
    late: Mask = (taken_up >= window.planned_ns + LATE_NS) | (part.int("due") >= window.planned_ns)
    return late
