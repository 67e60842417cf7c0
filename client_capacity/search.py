"""Finds the highest rate that is held, by trying rates. Pure: ``measure`` does the sending."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from client_capacity.staircase import rate_text, rounded, staircase

if TYPE_CHECKING:
    from collections.abc import Callable

Phase = Literal["growing", "shrinking", "bisecting", "repeating"]
Cause = Literal["client", "server", "errors"]
LimitedBy = Literal["client", "server", "errors", "max_rps", "interrupted"]

PASSING = "trying"  # a sentence that begins so is of no use once the next one is there
LEAST_RATE = 0.5
IDLE_CPU_SHARE = 0.1
LEAST_REPEATS = 4
TRIES, TRIES_DISTURBED = 2, 4


@dataclass(frozen=True, slots=True)
class Step:
    """One rate, tried once. ``cause`` is who kept it from being held, ``reason`` what was seen; rates a second.

    CPU shares: of one core, the mean of the workers; of all cores, for the host. None where nobody measured it.
    ``finding``: the code of the wave's finding on which the client is blamed although it sent on time.
    ``late_hosts``: those that were late, where others that sent too were not.
    ``disturbed``: others seem to have taken the workers' cores, so that the step says little.
    """

    phase: Phase
    rate: float
    cause: Cause | None = None
    reason: str = ""
    lag_p50_s: float | None = None
    lag_p99_s: float | None = None
    sent: int = 0
    dropped: int = 0
    completed_rate: float = 0.0
    worker_cpu_share: float | None = None
    max_rss_bytes: int = 0
    host_cpu_share: float | None = None
    blocked_by: str | None = None
    finding: str | None = None
    late_hosts: tuple[str, ...] = ()
    disturbed: bool = False
    run_dir: str | None = None

    @property
    def held(self) -> bool:
        """Tells whether this rate was sent on time and answered."""
        return self.cause is None

    @property
    def proven_rate(self) -> float:
        """The rate that this step proves for the client: where it kept its schedule, the rate at which answers came."""
        return 0.0 if self.cause == "client" else min(self.rate, self.completed_rate)

    def to_json(self) -> dict[str, Any]:
        """The step as a row of result.json."""
        return {"held": self.held, **asdict(self)}


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings of a search: where it begins, how far it goes and how fine it ends.

    ``growth``: factor between rates while they are held; its square while a worker is all but idle.
    ``resolution``: the factor between held and not held at which bisecting ends. ``repeats`` 0: no repeating.
    """

    start: float = 8.0
    growth: float = 2.0
    max_rate: float = 20_000.0
    resolution: float = 1.04
    repeats: int = 8
    repeat_factor: float = 1.03


@dataclass(frozen=True, slots=True)
class HighestRate:
    """The highest rate held, the interval it lies in (``high`` None: no end was found) and every step."""

    rate: float
    low: float
    high: float | None
    limited_by: LimitedBy
    steps: tuple[Step, ...]


class _Ended(Exception):  # noqa: N818 - no error: the search has nothing more to find
    def __init__(self, limited_by: LimitedBy) -> None:
        self.limited_by: LimitedBy = limited_by


def search(
    measure: Callable[[float, Phase], Step], settings: SearchSettings, say: Callable[[str], None] = lambda _: None
) -> HighestRate:
    """Grow until a rate is not held, bisect, then repeat around the found rate for an interval.

    ``measure`` tries a rate once and may raise KeyboardInterrupt: what was found by then is returned, unless
    nothing was. ``say`` hears what comes next.
    """
    seeker = _Seeker(measure, settings, say)
    try:
        held, not_held = seeker.narrow()
        low, rate, high = seeker.repeat(held, not_held) if settings.repeats else (held, held, not_held)
        return HighestRate(rate, low, high, "client", tuple(seeker.steps))
    except _Ended as end:
        return seeker.at_least(end.limited_by)
    except KeyboardInterrupt:
        if not seeker.steps:
            raise
        return seeker.at_least("interrupted")


class _Seeker:
    """A search under way: the steps so far."""

    def __init__(
        self, measure: Callable[[float, Phase], Step], settings: SearchSettings, say: Callable[[str], None]
    ) -> None:
        self._measure = measure
        self._settings = settings
        self._say = say
        self.steps: list[Step] = []

    def narrow(self) -> tuple[float, float]:
        """A rate that is held and one that is not, close together.

        What the machine did to two steps at once must not end the search too low: a rate somewhat higher still
        is tried once, and where that is held the search goes on from there.
        """
        held, not_held = self._bisect(*self._bracket())
        while (doubt := rounded(not_held * self._settings.resolution)) < self._settings.max_rate:
            if not self._try(doubt, "bisecting").held:
                break
            held, not_held = self._bisect(*self._grow(doubt))
        return held, not_held

    def repeat(self, held: float, not_held: float) -> tuple[float, float, float]:
        """Up after a rate that is held, down after one that is not: low end, estimate and high end.

        A level held two factors above what was not held tells that the machine feigned that end: the search goes
        on from there.
        """
        factor = self._settings.repeat_factor
        levels = [self._between(held, not_held)]
        while len(levels) <= self._settings.repeats:
            up = self._holds(levels[-1], "repeating")
            if up and levels[-1] > not_held * factor**2:
                held, not_held = self._bisect(*self._grow(levels[-1]))
                levels = [self._between(held, not_held)]
            else:
                levels.append(rounded(levels[-1] * factor if up else levels[-1] / factor))
        return staircase(levels, factor)

    def _between(self, held: float, not_held: float) -> float:
        level = rounded(math.sqrt(held * not_held))
        self._say(f"Repeating {self._settings.repeats} times near {rate_text(level)}/s.")
        return level

    def at_least(self, limited_by: LimitedBy) -> HighestRate:
        """The rate that the steps prove where the client's own limit was not found."""
        rate = max((step.proven_rate for step in self.steps), default=0.0)
        high = min((step.rate for step in self.steps), default=None) if limited_by == "client" else None
        return HighestRate(rate, rate, high, limited_by, tuple(self.steps))

    def _bracket(self) -> tuple[float, float]:
        """A rate that is held and a higher one that is not; ends the search where one of them does not exist."""
        rate = min(rounded(self._settings.start), self._settings.max_rate)
        self._say(f"Doubling from {rate_text(rate)}/s until a rate is too high.")
        if not self._holds(rate, "growing"):
            return self._shrink(rate)
        return self._grow(rate)

    def _grow(self, held: float) -> tuple[float, float]:
        while held < self._settings.max_rate:
            higher = min(rounded(held * self._growth()), self._settings.max_rate)
            if not self._holds(higher, "growing"):
                return held, higher
            held = higher
        raise _Ended("max_rps")

    def _bisect(self, held: float, not_held: float) -> tuple[float, float]:
        """The same two rates, but close together."""
        self._say(f"Bisecting between {rate_text(held)}/s and {rate_text(not_held)}/s.")
        while not_held / held > self._settings.resolution:
            middle = rounded(math.sqrt(held * not_held))
            if self._holds(middle, "bisecting"):
                held = middle
            else:
                not_held = middle
        return held, not_held

    def _shrink(self, rate: float) -> tuple[float, float]:
        while rate > LEAST_RATE:
            lower = max(rounded(rate / self._settings.growth), LEAST_RATE)
            if self._holds(lower, "shrinking"):
                return lower, rate
            rate = lower
        raise _Ended("client")

    def _growth(self) -> float:
        share = self.steps[-1].worker_cpu_share
        growth = self._settings.growth
        return growth**2 if share is not None and share < IDLE_CPU_SHARE else growth

    def _holds(self, rate: float, phase: Phase) -> bool:
        """Try a rate, and again where it is not held: a hiccup of the machine must not decide.

        Repeating averages hiccups out by itself, unless it is the endpoint that is blamed.
        """
        step = self._try(rate, phase)
        tries = 1
        while not step.held and tries < self._tries(step):
            step = self._try(rate, phase)
            tries += 1
        if step.cause in ("server", "errors"):
            raise _Ended(step.cause)
        return step.held

    def _tries(self, step: Step) -> int:
        if step.disturbed:
            return TRIES_DISTURBED
        return 1 if step.phase == "repeating" and step.cause == "client" else TRIES

    def _try(self, rate: float, phase: Phase) -> Step:
        step = self._measure(rate, phase)
        self.steps.append(step)
        return step
