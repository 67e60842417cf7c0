"""The frontier as programs read it, and ``pareto.json``: every number, with where it is from. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import OK, worst_exit_code
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.wording import number_text, pluralize
from visualization.comparison.conditions import differences
from visualization.comparison.result import RunResult, run_of
from visualization.pareto.answer import FORMULAS, NEEDED, answer_of, caveats, sentence
from visualization.pareto.costs import WHOLE, costs_of
from visualization.pareto.measuring import CACHED
from visualization.pareto.pieces import pieces_of
from visualization.pareto.points import (
    MEDIAN,
    THROUGHPUTS,
    Quantity,
    has_no_point,
    points_of,
    unusable_because,
    warnings_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.wave.wave import Wave
    from visualization.pareto.answer import Answer
    from visualization.pareto.configurations import End
    from visualization.pareto.costs import PerMillion, Weights
    from visualization.pareto.points import Configuration, Point

UNRECORDED = "requests were not recorded (--records none)"
_LENGTHS_APART = 0.05
_NO_STREAM = "no successful request streamed two pieces or more"
_TOO_LOW = "a piece may have several tokens, and then all speeds and rates of tokens are too low"


@dataclass(frozen=True, slots=True)
class ConfigurationResult:
    """The runs that were measured as one thing; ``cost_hour``: of all of it, None where no price was given."""

    name: str
    gpus: int
    cost_hour: float | None
    currency: str
    price_origin: str
    runs: list[RunResult]


@dataclass(frozen=True, slots=True)
class PointResult:
    """One load. ``unusable``: why nobody should choose by it. ``per_gpu``: tokens/s; ``cost``: of a million tokens."""

    configuration: str
    load: str
    runs: list[str]
    unusable: list[str]
    speed: dict[str, Quantity]
    per_gpu: dict[str, Quantity]
    tokens_in: float | None
    tokens_out: float | None
    cached_reported: float | None
    cost: dict[str, float]


@dataclass(frozen=True, slots=True)
class StretchResult:
    """Speeds above ``low`` up to ``high``; ``best``: None where it is not decided."""

    low: float
    high: float
    best: str | None
    alone: bool


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The answer by one speed and one kind of tokens; ``frontier``: places in ``points``, from 0."""

    speed: str
    throughput: str
    text: str
    frontier: list[int]
    best: list[StretchResult]
    sure: list[StretchResult] | None


@dataclass(frozen=True, slots=True)
class ParetoResult:
    """The whole result. ``weights``: by which the cost is divided; None where each kind has all of it."""

    schema_version: int
    headline: str
    speeds: dict[str, str]
    configurations: list[ConfigurationResult]
    points: list[PointResult]
    answers: list[AnswerResult]
    weights: str | None
    remarks: list[str]
    exit_code: int


@dataclass(frozen=True, slots=True)
class Pareto:
    """All that is shown: the points by their numbers, the answers to choose by, and the result of both."""

    points: tuple[Point, ...]
    costs: tuple[dict[str, float], ...]
    answers: tuple[Answer, ...]
    result: ParetoResult

    def answer(self, speed: str, throughput: str) -> Answer:
        """The one by these."""
        return next(each for each in self.answers if (each.speed, each.throughput) == (speed, throughput))


def pareto_of(
    configurations: Sequence[Configuration],
    per_million: PerMillion,
    weights: Weights | None = None,
    *,
    remarks: Sequence[str] = (),
    gpus_given: bool = True,
    ends: Sequence[End] = (),
) -> Pareto:
    """Measure every point and answer by each speed and each kind of tokens; ``remarks``: what else is to be said.

    ``ends``: of experiments that the waves are of.
    """
    waves = [wave for each in configurations for wave in each.waves]
    reports = any(pieces_of(wave).are_reported and not any(unusable_because(wave)) for wave in waves)
    points = tuple(point for each in configurations for point in points_of(each, others_report=reports))
    costs = tuple(costs_of(point, weights, per_million) for point in points)
    answers = tuple(answer_of(points, speed, throughput) for throughput in THROUGHPUTS for speed in FORMULAS)
    first = next(each for each in answers if each.speed == MEDIAN)
    said = [*caveats(first), *_remarks(configurations, points, weights), *([] if gpus_given else [_GPUS]), *remarks]
    warned = [f"{name}: {clause}." for name, clause in _warnings(configurations)]
    result = ParetoResult(
        schema_version=SCHEMA_VERSION,
        headline=" ".join([*(end.text for end in ends), sentence(first, points), *_unusable(waves, reports), *warned]),
        speeds=FORMULAS,
        configurations=[_configuration(each) for each in configurations],
        points=[_point(point, cost) for point, cost in zip(points, costs, strict=True)],
        answers=[_answer(each, points) for each in answers if each.curves],
        weights=None if weights is None else weights.text,
        remarks=[each.removesuffix(".") for each in said],
        exit_code=worst_exit_code(OK, *(wave.verdict.exit_code for wave in waves), *(end.exit_code for end in ends)),
    )
    return Pareto(points, costs, answers, result)


_GPUS = "Each run counts as one GPU, since --gpus was not given"


def _unusable(waves: Sequence[Wave], others_report: bool) -> Iterator[str]:
    """The runs that nobody should choose by, and why; their points are marked."""
    found = [reasons for wave in waves if (reasons := list(unusable_because(wave, others_report=others_report)))]
    if found:
        why = ", ".join(dict.fromkeys(reason for each in found for reason in each))
        verb = "is" if len(found) == 1 else "are"
        yield f"{len(found)} of {pluralize(len(waves), 'run', 'runs')} {verb} not usable: {why}."


def _warnings(configurations: Sequence[Configuration]) -> Iterator[tuple[str, str]]:
    for each in configurations:
        found = dict.fromkeys(clause for wave in each.waves for clause in warnings_of(wave))
        yield from ((each.name, clause) for clause in found)


def _remarks(
    configurations: Sequence[Configuration], points: Sequence[Point], weights: Weights | None
) -> Iterator[str]:
    """Sentences on all for which numbers beside each other may not be alike, or are not there."""
    waves = [wave for each in configurations for wave in each.waves]
    if unlike := list(differences(waves, asked_for=("load",))):
        yield f"The runs were measured differently: {'; '.join(unlike)}"
    yield from _lengths(configurations, points)
    if left_out := sum(map(has_no_point, waves)):
        yield f"{pluralize(left_out, 'run has', 'runs have')} no point, since their load changes all the time"
    yield from _mute(points)
    yield from _pieces(configurations, points)
    if bare := sum(speed.low is None for point in points if (speed := point.speeds.get(MEDIAN)) is not None):
        yield f"{pluralize(bare, 'point has', 'points have')} no interval of the median speed: {NEEDED}"
    if any(point.configuration.hour is not None for point in points):
        yield from _money(points, weights)


def _mute(points: Sequence[Point]) -> Iterator[str]:
    """The points that have no speed, by the cause."""
    causes = Counter(
        UNRECORDED if all(wave.counts is not None for wave in point.runs) else _NO_STREAM
        for point in points
        if not point.speeds
    )
    for cause, number in causes.items():
        yield f"{pluralize(number, 'point has', 'points have')} no speed: {cause}"


def _pieces(configurations: Sequence[Configuration], points: Sequence[Point]) -> Iterator[str]:
    """The configurations of which usable points count pieces: of no other point tokens were reported then."""
    used = {id(wave) for point in points if not point.unusable for wave in point.runs}
    names = [
        each.name
        for each in configurations
        if any(pieces_of(wave).are_counted for wave in each.waves if id(wave) in used)
    ]
    if names:
        yield f"The tokens of {' and '.join(names)} are counted pieces, as the server reported no usage: {_TOO_LOW}"


def _lengths(configurations: Sequence[Configuration], points: Sequence[Point]) -> Iterator[str]:
    """Whose answers are longer, or prompts: speeds of other requests are not comparable."""
    for what, of in (("prompts", "tokens_in"), ("answers", "tokens_out")):
        means = {
            each.name: _mean([getattr(p, of) for p in points if p.configuration is each]) for each in configurations
        }
        known = {name: mean for name, mean in means.items() if mean is not None}
        if known and max(known.values()) > (1 + _LENGTHS_APART) * min(known.values()):
            texts = ", ".join(f"{number_text(mean)} tokens ({name})" for name, mean in known.items())
            yield f"The {what} differ in length: {texts} on average"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _money(points: Sequence[Point], weights: Weights | None) -> Iterator[str]:
    """The division of the cost, and what is not known of the cache."""
    if weights is None:
        yield WHOLE
    else:
        yield f"The cost is divided among input, cached and output tokens as {weights.text} for a token"
    priced = list({p.configuration.name: p.configuration for p in points if p.configuration.hour is not None}.values())
    free = dict.fromkeys(point.configuration.name for point in points if point.configuration.hour is None)
    yield from (f"{name} has no cost: no price was given for it" for name in free)
    texts = (f"{each.name} {each.hour:g} {each.currency} per hour ({each.origin})" for each in priced)
    yield f"Cost at the lower end of each interval; {'; '.join(texts)}"
    mute = [each.name for each in priced if not _cached(each, points)[0]]
    if mute:
        yield f"{' and '.join(mute)} did not report cached tokens: input includes them"
    for each in priced:
        reported, ok = _cached(each, points)
        if 0 < reported < ok:
            yield f"{each.name} reported cached tokens for {reported:,} of {ok:,} requests; the others count as without"


def _cached(configuration: Configuration, points: Sequence[Point]) -> tuple[int, int]:
    """The number of its requests that reported cached tokens, and of all."""
    counts = [point.cached for point in points if point.configuration is configuration]
    return sum(reported for reported, _ in counts), sum(ok for _, ok in counts)


def _configuration(each: Configuration) -> ConfigurationResult:
    return ConfigurationResult(
        each.name, each.gpus, each.hour, each.currency, each.origin, [run_of(wave) for wave in each.waves]
    )


def _point(point: Point, cost: dict[str, float]) -> PointResult:
    reported, ok = point.cached
    return PointResult(
        configuration=point.configuration.name,
        load=point.load,
        runs=[str(wave.run_dir.path) for wave in point.runs if wave.run_dir is not None],
        unusable=list(point.unusable),
        speed=dict(point.speeds),
        per_gpu=point.per_gpu,
        tokens_in=point.tokens_in,
        tokens_out=point.tokens_out,
        cached_reported=reported / ok if ok and CACHED in point.rates else None,
        cost=cost,
    )


def _answer(answer: Answer, points: Sequence[Point]) -> AnswerResult:
    sure = None if answer.sure is None else [StretchResult(e.low, e.high, e.best, e.alone) for e in answer.sure]
    best = [StretchResult(e.low, e.high, e.best, e.alone) for e in answer.best]
    return AnswerResult(answer.speed, answer.throughput, sentence(answer, points), list(answer.frontier), best, sure)
