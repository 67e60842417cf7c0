"""The question that a search answers: the endpoint, the limits, how far to go. Light: it loads nothing that sends."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.engine.pilot import Rate, Users
from inference_benchmarker.plan.load import MAX_CONCURRENCY, Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.stage import LEAST_RATE, MAX_RATE
from server_capacity.search.limits import OF_STREAMS, user_limits_of
from server_capacity.search.settings import LONGEST_TIME_S, USUAL_TIME_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.engine.pilot import Order
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.plan.think import Think
    from server_capacity.results.types.bounds import Endpoint
    from server_capacity.results.types.capacity import CanaryAnswer
    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from server_capacity.search.user_limits import UserLimit

Cache = Literal["as-is", "warm", "fresh"]
NUDGE = 1.001
"""A stretch at the rate of the one before is a stage only where the rate differs."""
WARMUP_THINKS, LONGEST_WARMUP_S = 2.0, 60.0
LEAST_CYCLE_S = 0.05
SETTLING_LENGTHS, LONGEST_SETTLING_S = 2.0, 1800.0
UNITS = {"rps": "/s", "users": " users", "sessions": " sessions/s"}
CONFIRMED = 1 / 3
"""The load of confirmations, in that of the search."""
WHOLE_ANSWER, LONG_S, LEAST_LIMITS = ("response_time", "latency"), 1.0, 5.0
"""A limit of so many seconds may be on generated text, in a search of at least so many times that."""


@dataclass(frozen=True, slots=True)
class SessionShape:
    """The mean length in seconds and the number of turns of a session while few are open; 0 before one was sent.

    ``token_s``: of streams, the mean time of a token after the first.
    """

    seconds: float = 0.0
    turns: float = 1.0
    token_s: float = 0.0

    @property
    def settling_s(self) -> float:
        """The time after which as many sessions are open as later, and at all turns."""
        return min(SETTLING_LENGTHS * self.seconds, LONGEST_SETTLING_S)


@dataclass(frozen=True, slots=True)
class Question:
    """A search that is asked for.

    ``plan``: what is sent, and from how many workers at first; its rate and bounds are those of each wave.
    ``most_workers``: as many may be taken where the client is the limit. ``soak_s``: seconds for which the interval's
    lower end is confirmed, None for a usual confirmation. ``warm``: every payload is sent once before the search;
    ``cache``: as it was asked for.
    ``in_users``: rates are numbers of users of a closed loop, who ``think`` (None: not at all). ``sessions``: arrivals
    are sessions, whose rate it is, or how many are open at a time; None of single requests. ``alone``: of answers that
    are generated, the mean time of a request of which few are in flight. ``endpoint``: the object of that name in
    capacity.json. ``lost`` tells why an endpoint that was made for it is there no more.
    ``canaries``: the answers to fixed questions that were asked before.
    """

    plan: WavePlan
    limits: tuple[Limit, ...]
    settings: Settings
    most_workers: int
    soak_s: float | None = None
    warm: bool = False
    cache: Cache = "as-is"
    in_users: bool = False
    think: Think | None = None
    sessions: SessionShape | None = None
    alone: SessionShape | None = None
    endpoint: Endpoint | None = None
    lost: Callable[[], str] = str
    canaries: tuple[CanaryAnswer, ...] | None = None

    def exploration(self, rate: float, workers: int, folder: Path) -> WavePlan:
        """The plan of an adaptive wave that begins at a rate; its limits are the search's, so it has none itself."""
        load = self.load(rate, steered=True)
        plan = replace(self.plan.with_workers(workers), load=load, bounds=Bounds(), output_dir=folder)
        return replace(plan, slos=(), server_limits=(), success_threshold=0.0, name=self.named("exploration"))

    def confirmation(self, rate: float, seconds: float, workers: int, folder: Path) -> WavePlan:
        """The plan of an ordinary wave at one rate, with every limit."""
        load = self.load(rate)
        bounds = Bounds(Decimal(f"{seconds:.3f}"))
        plan = replace(self.plan.with_workers(workers), load=load, bounds=bounds, output_dir=folder)
        if isinstance(load, ClosedLoop):
            settling = Decimal(f"{min(WARMUP_THINKS * self.think_s, LONGEST_WARMUP_S):.3f}")
            plan = plan.with_workers(min(workers, load.concurrency))
            plan = replace(plan, max_in_flight=None, warmup_s=settling)
        if (shape := self.shape) is not None:
            plan = replace(plan, warmup_s=max(plan.warmup_s, Decimal(f"{shape.settling_s:.3f}")))
        return replace(plan, name=self.named(f"{self.offerable(rate):f}{self.unit}"))

    def load(self, rate: float, *, steered: bool = False) -> OpenLoop | ClosedLoop:
        """The load at a rate, or of so many users."""
        if self.in_users:
            return ClosedLoop(max(1, int(self.offerable(rate))), self.think, steered=steered)
        return OpenLoop(offerable(rate), self.settings.arrivals, steered=steered, think=self.think)

    def offerable(self, rate: float) -> Decimal:
        """The rate, or the number of users, that is nearest and that a wave can offer; 0 is a pause."""
        return Decimal(min(round(rate), MAX_CONCURRENCY)) if self.in_users else offerable(rate)

    def order(self, rate: Decimal, now: Decimal) -> Order:
        """The order for a rate, or a number of users, while it is ``now``: for it to be a stage it must differ."""
        most = self.settings.max_rps or math.inf
        if self.in_users:
            same = 0 if rate != now else 1 if rate < most else -1
            return Users(max(int(rate) + same, min(int(rate), 1)))
        if rate != now:
            return Rate(rate)
        above = float(rate) * NUDGE
        return Rate(offerable(above if above <= most else float(rate) / NUDGE))

    def requests_per_s(self, rate: float) -> float:
        """About the most requests/s that come of it."""
        if self.sessions is not None:
            return rate * self.sessions.turns / (self.sessions.seconds if self.in_users else 1.0)
        return rate / max(self.think_s, LEAST_CYCLE_S) if self.in_users else rate

    def judged_per_s(self, limit: Limit, rate: float) -> float:
        """About as many requests a second are compared with a limit; of one on sessions, as many sessions."""
        turns = self.sessions.turns if self.sessions is not None and limit.is_on_sessions else 1.0
        return self.requests_per_s(rate) / turns

    @property
    def shape(self) -> SessionShape | None:
        """Of a session, or of a request whose answer is generated, while few are open; None of other searches."""
        return self.sessions or self.alone

    @property
    def is_of_streams(self) -> bool:
        """Tells whether it is on requests/s by the times of their tokens, or their answers were seen to be generated.

        An engine that generates for many at a time answers each more slowly the more there are, with no queue at all.
        """
        return self.is_of_rates and (self.alone is not None or any(limit.metric in OF_STREAMS for limit in self.limits))

    @property
    def scouts(self) -> bool:
        """Tells whether a few sessions or requests come first: nobody knows yet how long they take, or what they are.

        Text is seldom generated in less than a second: a search with shorter limits begins at once.
        """
        if self.alone is not None or not self.is_of_rates:
            return self.sessions is not None and not self.sessions.seconds
        return self.is_of_streams or any(map(self._may_be_on_text, self.limits))

    def _may_be_on_text(self, limit: Limit) -> bool:
        bound_s = limit.bound_s or 0.0
        enough = self.settings.time_s is None or self.settings.time_s >= LEAST_LIMITS * bound_s
        return limit.metric in WHOLE_ANSWER and bound_s >= LONG_S and enough

    @property
    def is_of_rates(self) -> bool:
        """Tells whether it is on requests/s, of which queueing theory knows."""
        return self.kind == "rps"

    @property
    def kind(self) -> Literal["rps", "users", "sessions"]:
        """The word for what is searched for."""
        return "users" if self.in_users else "rps" if self.sessions is None else "sessions"

    @property
    def unit(self) -> str:
        """The unit of its rates."""
        return UNITS[self.kind]

    @property
    def user_limits(self) -> tuple[UserLimit, ...]:
        """The limits on values of the user's own, which are compared with what was sent."""
        return user_limits_of(self.plan.slos)

    @property
    def every_limit(self) -> tuple[Limit | UserLimit, ...]:
        """All limits that a wave is compared with, those on values of the user's own last."""
        return (*self.limits, *self.user_limits)

    @property
    def longest_s(self) -> float:
        """About the seconds of load of the search and of what confirms its answer."""
        searched = self.settings.time_s or (LONGEST_TIME_S if self.settings.precision else USUAL_TIME_S)
        narrowed = CONFIRMED if self.user_limits else 0.0
        return searched * (1 + CONFIRMED + narrowed) + (self.soak_s or 0.0)

    @property
    def think_s(self) -> float:
        """The mean think time in seconds."""
        return 0.0 if self.think is None else float(self.think.mean_s)

    def named(self, what: str) -> str:
        """The name of a wave of the search in reports."""
        return what if self.plan.name is None else f"{self.plan.name}, {what}"


def offerable(rate: float) -> Decimal:
    """A rate to four digits, as a wave can offer it; 0 is a pause."""
    if rate <= 0:
        return Decimal(0)
    digits = Decimal(f"{rate:.3e}").quantize(LEAST_RATE, ROUND_HALF_EVEN) if rate < 1 else Decimal(f"{rate:.3e}")
    return min(max(digits.normalize() + 0, LEAST_RATE), Decimal(MAX_RATE))
