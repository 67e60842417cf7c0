"""Waves -> points: the speed of a user and the tokens of a GPU at one load of one configuration. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from inference_benchmarker.report.headline import FAILED, LIMIT_MISSED, outcome
from inference_benchmarker.verdict.client.answers import answer_warnings
from inference_benchmarker.verdict.client.bottleneck import limited_words
from inference_benchmarker.verdict.client.evidence import Evidence
from visualization.comparison.intervals import interval
from visualization.comparison.repeats import over_side
from visualization.pareto.loads import loads_of, parts_of
from visualization.pareto.measuring import (
    CACHED,
    GAP,
    INPUT,
    OUTPUT,
    PER_TOKEN,
    TOTAL,
    TPOT,
    UNCACHED,
    cached_reports,
    estimates_of,
)
from visualization.pareto.pieces import COUNTED, HIDDEN, TOGETHER, pieces_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.changes import Value
    from visualization.pareto.loads import Load

MEDIAN, P90, END_TO_END, ITL = "median", "p90", "end_to_end_p90", "itl"
_OF_SPEEDS = {MEDIAN: f"{TPOT}.p50", P90: f"{TPOT}.p90", END_TO_END: f"{PER_TOKEN}.p90", ITL: GAP}
KINDS = (INPUT, CACHED, UNCACHED, OUTPUT, TOTAL)
THROUGHPUTS = (OUTPUT, TOTAL)
_BETWEEN_PIECES = (MEDIAN, P90, ITL)
_BAD = ("INVALID", FAILED, LIMIT_MISSED, "PENDING")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its 95% interval; the ends are None where the records do not bound it."""

    value: float
    low: float | None = None
    high: float | None = None

    def over(self, divisor: float) -> Quantity:
        """The value for each of so many."""
        low, high = (None if end is None else end / divisor for end in (self.low, self.high))
        return Quantity(self.value / divisor, low, high)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The waves that were sent to one thing, which has so many GPUs; ``hour``: what an hour of all of it costs."""

    name: str
    waves: tuple[Wave, ...]
    gpus: int = 1
    hour: float | None = None
    currency: str = "USD"
    origin: str = ""
    """The source of the price, in words."""


@dataclass(frozen=True, slots=True)
class Point:
    """One load of a configuration. ``unusable``: why its numbers are not those to choose by; empty where they are.

    ``speeds`` are tokens/s of a user, ``per_gpu`` tokens/s of a GPU by kind, ``rates`` those of all of it.
    ``runs``: the waves that were measured; ``cached``: how many requests reported cached tokens, of how many.
    """

    configuration: Configuration
    load: str
    offered: float
    runs: tuple[Wave, ...]
    speeds: Mapping[str, Quantity]
    rates: Mapping[str, Quantity]
    tokens_in: float | None
    tokens_out: float | None
    cached: tuple[int, int]
    unusable: tuple[str, ...] = ()

    @property
    def per_gpu(self) -> dict[str, Quantity]:
        """Tokens a second for each GPU."""
        return {kind: rate.over(self.configuration.gpus) for kind, rate in self.rates.items()}


def points_of(configuration: Configuration, *, others_report: bool = False) -> list[Point]:
    """A point for each load, the lowest first; waves of one load and the same requests are its repetitions.

    ``others_report``: the tokens of what it is compared with are those that a server reported.
    """
    points = [_point(configuration, load, others_report=others_report) for load in loads_of(configuration.waves)]
    return sorted(points, key=lambda point: point.offered)


def has_no_point(wave: Wave) -> bool:
    """Tells whether its load changed all the time."""
    return not any(True for _ in parts_of(wave, {}))


def _point(configuration: Configuration, load: Load, *, others_report: bool) -> Point:
    """Of repetitions those count of which nothing is doubtful, where there are any."""
    parts = load.parts
    reasons = [list(unusable_because(part.wave, others_report=others_report)) for part in parts]
    good = [part for part, unusable in zip(parts, reasons, strict=True) if not unusable]
    used = good or list(parts)
    measured = [estimates_of(part.facts, part.summary) for part in used]
    known = {name: over_side([each.get(name) for each in measured]) for each in measured for name in each}
    reports = [cached_reports(part.facts) for part in used]
    tokens = [part.summary.tokens for part in used if part.summary.tokens is not None]
    unusable = () if good else tuple(dict.fromkeys(reason for each in reasons for reason in each))
    no_speeds = _BETWEEN_PIECES if {TOGETHER, HIDDEN} & {*unusable} else ()
    return Point(
        configuration=configuration,
        load=load.text,
        offered=load.offered,
        runs=tuple(part.wave for part in used),
        speeds={
            speed: _speed(time)
            for speed, name in _OF_SPEEDS.items()
            if speed not in no_speeds and (time := known.get(name)) is not None
        },
        rates={kind: _quantity(rate) for kind in KINDS if (rate := known.get(kind)) is not None},
        tokens_in=_mean(each.tokens_in_per_request for each in tokens),
        tokens_out=_mean(each.tokens_out_per_request for each in tokens),
        cached=(sum(each for each, _ in reports), sum(each for _, each in reports)),
        unusable=unusable,
    )


def unusable_because(wave: Wave, *, others_report: bool = False) -> Iterator[str]:
    """The words on all for which nobody should choose by a wave: it is no measurement of the endpoint, or not good.

    ``others_report``: it is compared with waves whose tokens a server reported.
    """
    word = outcome(wave.summary, wave.verdict)
    if word in _BAD:
        yield word
    yield from ("interrupted",) * wave.interrupted
    yield from ("aborted",) * (wave.aborted is not None)
    if (side := wave.verdict.limited_by) not in (None, "server"):
        yield limited_words(side)
    yield from ("doubtful answers",) * any(warnings_of(wave))
    pieces = pieces_of(wave)
    yield from (TOGETHER,) * pieces.arrive_together
    yield from (HIDDEN,) * pieces.hide_reasoning
    yield from (COUNTED,) * (others_report and pieces.are_counted)


def warnings_of(wave: Wave) -> Iterator[str]:
    """Clauses on what speaks against counting its answers as a success."""
    return answer_warnings([Evidence(wave, wave.summary)])


def _quantity(estimate: Value) -> Quantity:
    return Quantity(estimate.value, *(interval(estimate) or (None, None)))


def _speed(estimate: Value) -> Quantity:
    """The inverse of a time per token."""
    time = _quantity(estimate)
    low, high = (1 / end if end else None for end in (time.high, time.low))
    return Quantity(1 / time.value, low, high) if low and high else Quantity(1 / time.value)


def _mean(distributions: Iterable[Distribution | None]) -> float | None:
    known = [each.mean for each in distributions if each is not None]
    return fmean(known) if known else None
