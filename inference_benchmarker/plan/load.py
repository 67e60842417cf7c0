"""The kinds of load: arrivals at a rate or in stages (constant, Poisson), or requests in flight; and its end. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.errors import Problem
from inference_benchmarker.plan.numbers import take_exactly
from inference_benchmarker.plan.replay import Recording, Replay  # noqa: TC001 - a stored plan is held against its types
from inference_benchmarker.plan.schedule import NO_END, Schedule, Segment
from inference_benchmarker.plan.stage import LEAST_RATE, LEAST_SECONDS, MAX_RATE, Stage
from inference_benchmarker.plan.think import Think  # noqa: TC001 - as those of a replay
from inference_benchmarker.words.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_CONCURRENCY = 1_000_000
MAX_STAGES = 1_000
RATE_OVER_S = 5.0

Arrivals = Literal["constant", "poisson"]
"""The kinds of arrivals: ``stripe`` draws the instants of each, and ``pacing`` counts them."""
ARRIVALS_IN_WORDS: Mapping[Arrivals, str] = {"constant": "evenly spaced arrivals", "poisson": "Poisson arrivals"}


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Arrivals independent of completions: ``rate`` per second, an exact decimal; for ``stages`` and ``replay`` a mean.

    For a ``replay`` it is 0 until its file has been read. For a ``steered`` load it is the first rate: it may change
    while the wave runs, and the wave needs no bound. When the wave is over, ``stages`` are the load that was sent.
    ``think``: the time between turns for sessions that set none.
    """

    rate: Decimal = field(default_factory=Decimal)
    arrivals: Arrivals = "constant"
    stages: tuple[Stage, ...] = ()
    replay: Replay | None = None
    steered: bool = False
    think: Think | None = None

    def __post_init__(self) -> None:
        take_exactly(self, "rate")
        object.__setattr__(self, "stages", tuple(self.stages))
        if self.stages and not self.rate:
            object.__setattr__(self, "rate", self._mean_rate())
        if self.recording is not None and not self.rate:
            object.__setattr__(self, "rate", self.recording.rate)

    @property
    def schedule(self) -> Schedule:
        """Its rate over time: that of its recording or its stages, else its rate for ever."""
        if self.replay is not None:
            if self.replay.schedule is None:
                raise ValueError(f"{self.replay.file} has not been read")
            return self.replay.schedule
        if not self.stages:
            rate = Fraction(self.rate)
            return Schedule([Segment(0, NO_END, Fraction(0), rate, rate)])
        segments: list[Segment] = []
        start, before = 0, Fraction(0)
        for stage in self.stages:
            end = start + stage.duration_ns
            segments.append(Segment(start, end, before, Fraction(stage.from_rps), Fraction(stage.to_rps)))
            start, before = end, segments[-1].after
        return Schedule(segments)

    @property
    def is_steered(self) -> bool:
        """Tells whether its rate may be changed while the wave runs, and is not known as a whole."""
        return self.steered and not self.stages

    @property
    def recording(self) -> Recording | None:
        """Facts of the recording that is replayed, once its file has been read."""
        return None if self.replay is None else self.replay.recording

    @property
    def length_s(self) -> Decimal | None:
        """The seconds that stages or a recording last; None where something else ends the wave."""
        if self.recording is not None:
            return self.recording.length_s
        return self.stages_s if self.stages else None

    @property
    def stages_s(self) -> Decimal:
        """The seconds that the stages last together."""
        return sum((stage.duration_s for stage in self.stages), Decimal())

    @property
    def stage_ends_ns(self) -> tuple[int, ...]:
        """The end of each stage, nanoseconds after wave start."""
        return tuple(accumulate(stage.duration_ns for stage in self.stages))

    @property
    def peak_rps(self) -> Decimal:
        """The highest rate, requests/s; of a recording the most arrivals in a second of the wave."""
        if self.recording is not None:
            return Decimal(self.recording.peak_rps)
        return max((rate for stage in self.stages for rate in (stage.from_rps, stage.to_rps)), default=self.rate)

    @property
    def text(self) -> str:
        """The rate, or the stages as they may be written, or the recording."""
        if self.replay is not None:
            return self.replay.text
        first = " at first" if self.steered else ""
        return ", ".join(stage.text for stage in self.stages) or f"{self.rate.normalize():f} requests/s{first}"

    def rate_at(self, seconds: float) -> float:
        """The rate at a time after wave start; of stages, the first one's before it and 0 after the last one.

        Of a recording, over the ``RATE_OVER_S`` seconds up to then.
        """
        if self.replay is not None and (schedule := self.replay.schedule) is not None:
            ends = (int(end * NS) for end in (seconds - RATE_OVER_S, seconds))
            before, now = map(schedule.count, ends)
            return (now - before) / min(RATE_OVER_S, max(seconds, 1.0))
        if not self.stages:
            return float(self.rate)
        start = 0.0
        for stage in self.stages:
            first, last, length = float(stage.from_rps), float(stage.to_rps), float(stage.duration_s)
            if seconds < start + length:
                return first + (last - first) * max(seconds - start, 0.0) / length
            start += length
        return 0.0

    @property
    def is_steady(self) -> bool:
        """Tells whether it has one rate from beginning to end."""
        return len({rate for stage in self.stages for rate in (stage.from_rps, stage.to_rps)}) < 2

    @property
    def stage_names(self) -> tuple[str, ...]:
        """The name of each stage, or its place from 1."""
        return tuple(stage.name or str(place) for place, stage in enumerate(self.stages, 1))

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with it."""
        if self.replay is not None:
            yield from self._replay_problems(self.replay)
        elif self.stages:
            yield from (Problem(("stages",), f"--stages: {text}") for text in self._stage_problems())
        elif not self.rate.is_finite() or not 0 < self.rate <= MAX_RATE:
            text = f"--client-rps must be above 0 and at most {MAX_RATE:,} requests/s, not {self.rate}."
            yield Problem(("rate",), text)
        elif self.rate < LEAST_RATE:
            yield Problem(("rate",), f"--client-rps must be at least {LEAST_RATE} requests/s, not {self.rate}.")
        if self.think is not None:
            yield from (Problem(("think",), f"--think-time: {text}") for text in self.think.problems())
        if self.steered and self.replay is not None:
            yield Problem(
                ("steered", "replay"), "--interactive changes a rate: give --client-rps in place of --replay."
            )
        if self.arrivals not in ARRIVALS_IN_WORDS:
            kinds = " or ".join(ARRIVALS_IN_WORDS)
            yield Problem(("arrivals",), f"--arrivals must be {kinds}, not {self.arrivals!r}.")

    def _replay_problems(self, replay: Replay) -> Iterator[Problem]:
        yield from (Problem(("speed", "window"), text) for text in replay.problems())
        if self.stages:
            yield Problem(("replay", "stages"), "Give either --replay or --stages, not both.")
        if self.arrivals != "constant":
            yield Problem(("replay", "arrivals"), "Give either --replay or --arrivals, not both.")
        recording = self.recording
        if self.rate != (Decimal(0) if recording is None else recording.rate):
            yield Problem(("replay", "rate"), "Give either --replay or --client-rps, not both.")

    def _stage_problems(self) -> Iterator[str]:
        if len(self.stages) > MAX_STAGES:
            yield f"there may be {MAX_STAGES:,} stages, not {len(self.stages):,}."
            return
        wrong = [
            f"stage {place} ({stage.text}): {text}"
            for place, stage in enumerate(self.stages, 1)
            for text in stage.problems()
        ]
        yield from wrong
        names = Counter(stage.name for stage in self.stages if stage.name)
        yield from (f"{count} stages are called {name}." for name, count in names.items() if count > 1)
        if wrong:
            return
        if self.stages_s > MAX_SECONDS:
            yield f"they may last {MAX_SECONDS:,} seconds together, not {self.stages_s}."
        if not self.peak_rps:
            yield "at least one needs a rate above 0."
        elif self.rate != self._mean_rate():
            yield "give either them or a rate, not both."

    def _mean_rate(self) -> Decimal:
        """Arrivals a second over all stages, to 28 digits."""
        total = sum((stage.arrivals for stage in self.stages), Decimal())
        if not total.is_finite() or not self.stages_s:
            return Decimal(0)
        return total / self.stages_s


@dataclass(frozen=True, slots=True)
class Population:
    """So many users of a closed loop for ``duration_s`` seconds; 0 is a pause."""

    users: int
    duration_s: Decimal

    def __post_init__(self) -> None:
        take_exactly(self, "duration_s")


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """``concurrency`` users, each of whom sends a request, waits for its answer, thinks, and sends the next.

    Without ``think`` exactly this many requests are in flight, with it at most this many. For a ``steered`` load it is
    the first concurrency: it may change while the wave runs, and the wave needs no bound. When the wave is over,
    ``populations`` has those that there were.
    """

    concurrency: int
    think: Think | None = None
    steered: bool = False
    populations: tuple[Population, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "populations", tuple(self.populations))

    @property
    def is_steered(self) -> bool:
        """Tells whether its concurrency may be changed while the wave runs, and is not known as a whole."""
        return self.steered and not self.populations

    @property
    def length_s(self) -> Decimal | None:
        """The seconds that its populations lasted; None where something else ends the wave."""
        return sum((each.duration_s for each in self.populations), Decimal()) if self.populations else None

    @property
    def has_users(self) -> bool:
        """Tells whether its requests come from users who think, or whose number changes."""
        return self.think is not None or self.steered

    @property
    def text(self) -> str:
        """``8 in flight``, or ``8 users who think exponential:5s``."""
        if not self.has_users:
            return f"{self.concurrency:,} in flight"
        users = "1 user" if self.concurrency == 1 else f"{self.concurrency:,} users"
        first = " at first" if self.steered else ""
        return f"{users}{first}{f' who think {self.think.text}' if self.think else ''}"

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with it."""
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            text = f"--concurrency must be from 1 to {MAX_CONCURRENCY:,}, not {self.concurrency}."
            yield Problem(("concurrency",), text)
        if self.think is not None:
            yield from (Problem(("think",), f"--think-time: {text}") for text in self.think.problems())


@dataclass(frozen=True, slots=True)
class Bounds:
    """When the wave ends: after ``duration_s`` seconds or ``num_requests`` arrivals, whichever comes first."""

    duration_s: Decimal | None = None
    num_requests: int | None = None

    def __post_init__(self) -> None:
        take_exactly(self, "duration_s")

    @property
    def duration_ns(self) -> int | None:
        """The time bound in nanoseconds after wave start."""
        return None if self.duration_s is None else int(self.duration_s * NS)

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with them."""
        if self.duration_s is None and self.num_requests is None:
            text = "A wave needs an end: give --obs-time SECONDS, --num-requests N, or both."
            yield Problem(("duration_s", "num_requests"), text)
        if self.duration_s is not None:
            yield from seconds_problems("duration_s", "--obs-time", self.duration_s, least=LEAST_SECONDS)
        if self.num_requests is not None and not 1 <= self.num_requests <= 10**9:
            text = f"--num-requests must be from 1 to 1,000,000,000, not {self.num_requests}."
            yield Problem(("num_requests",), text)


def seconds_problems(field: str, flag: str, value: Decimal, least: Decimal = Decimal(0)) -> Iterator[Problem]:
    """The problem of a time that is too short or too long, or no number."""
    if not value.is_finite() or not least <= value <= MAX_SECONDS:
        yield Problem((field,), f"{flag} must be from {least} to {MAX_SECONDS:,} seconds, not {value}.")
