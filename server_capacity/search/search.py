"""The search itself: one wave whose rate changes, ordered from what has been counted so far. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from server_capacity.search.curve import COARSE
from server_capacity.search.estimate import Known, known_of, lowest_of
from server_capacity.search.pace import Pace, overloaded, pace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

FIRST_RATE = 1.0
GROW_TIMES, GROW_S = 2.0, 2.0
FEW = 8.0  # requests/s below which the rate grows faster
NEAR_S = 8.0
LATE_S = 1.5
BACKLOG, BACKLOG_ANSWERS = 10.0, 4.0
AWAY, MOST_AWAY = 0.5, 0.1
MOST_CHANGES = 900


@dataclass(frozen=True, slots=True)
class Moment:
    """The knowledge of now, ``now_s`` seconds after wave start; the last stretch runs and ends now.

    Slices of answers as they came in, up to about 1.5 s late. ``in_flight``: requests not answered yet.
    """

    now_s: float
    stretches: Sequence[Stretch]
    in_flight: int


class Search:
    """Asked several times a second for the next rate. ``purpose`` of the stretch that runs or was just ordered.

    ``client_most``: the highest rate that the client could do, where it was the limit.
    """

    def __init__(self, limits: Sequence[Limit], settings: Settings) -> None:
        self.limits, self.settings = limits, settings
        self.first_rate = min(settings.start_rps or FIRST_RATE, settings.max_rps or math.inf)
        self.purpose = "grow"
        self.client_most: float | None = None
        self._load_s = 0.0
        self._changes = 0
        self._best = self.first_rate
        self._above = False
        self._paced, self._known_pace = -1, Pace()

    def order(self, moment: Moment) -> float | Literal["end"] | None:
        """The rate to send from now on (0 pauses until the backlog is gone), the end, or None: as is."""
        running = moment.stretches[-1]
        if running.rate == 0:
            return self._after_pause(moment)
        if self._load_s + running.seconds >= self.settings.load_s(0.0) or self._changes >= MOST_CHANGES:
            return "end"
        if running.seconds >= 1.0 and overloaded(running, self._pace(moment).answer_s):
            return self._change("drain", 0.0, running)
        if running.seconds < self._least_s(running, moment):
            return None
        if self.purpose == "grow":
            return self._grow(moment)
        return self._near(moment)

    def _after_pause(self, moment: Moment) -> float | Literal["end"] | None:
        pause = moment.stretches[-1]
        if moment.in_flight > 0 and pause.seconds < 30.0 + 10.0 * self._pace(moment).answer_s:
            return None
        return self._near(moment)

    def _least_s(self, running: Stretch, moment: Moment) -> float:
        pace = self._pace(moment)
        if self.purpose == "grow":
            return max(GROW_S, LATE_S + 1.0, 3 * pace.answer_s)
        return max(NEAR_S, min(8 * pace.relaxation_s(running.rate), self.settings.load_s(0.0) / 13))

    def _pace(self, moment: Moment) -> Pace:
        if self._paced != len(moment.stretches):
            self._paced, self._known_pace = len(moment.stretches), pace_of(moment.stretches[:-1])
        return self._known_pace

    def _grow(self, moment: Moment) -> float | Literal["end"]:
        running = moment.stretches[-1]
        if any(known.broken for known in known_of(self.limits, moment.stretches, COARSE)):
            return self._near(moment)
        most = self.settings.max_rps or math.inf
        if running.rate >= most:
            return "end"
        times = GROW_TIMES**2 if running.rate < FEW else GROW_TIMES
        return self._change("grow", min(running.rate * times, most), running)

    def _near(self, moment: Moment) -> float | Literal["end"]:
        running = moment.stretches[-1]
        if moment.in_flight > BACKLOG + BACKLOG_ANSWERS * running.rate * self._pace(moment).answer_s:
            return self._change("drain", 0.0, running)
        lowest = lowest_of(known_of(self.limits, moment.stretches, COARSE))
        if lowest.broken is None:
            return self._change("grow", self._best * GROW_TIMES, running)
        return self._change(*self._next(lowest), running)

    def _next(self, lowest: Known) -> tuple[str, float]:
        fitted = lowest.fit
        if fitted is None or lowest.broken is None:
            return "bisect", lowest.rate
        self._above = not self._above
        away = min(MOST_AWAY, max(AWAY / fitted.slope, AWAY * fitted.sd))
        return ("above", fitted.rate * math.exp(away)) if self._above else ("below", fitted.rate * math.exp(-away))

    def _change(self, purpose: str, rate: float, running: Stretch) -> float:
        self._load_s += running.seconds if running.rate > 0 else 0.0
        self._changes += 1
        self.purpose = purpose
        if rate > 0 and not overloaded(running, self._known_pace.answer_s):
            self._best = max(self._best, running.rate)
        return rate
