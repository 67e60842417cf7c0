"""Points -> which configuration is better for which users, in a sentence: by one speed and one kind of tokens. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import number_text, pluralize, supported
from visualization.comparison.estimates import LEAST_BLOCKS
from visualization.pareto.frontier import Stretch, beside, curve_of, frontier, stretches, sure_stretches
from visualization.pareto.points import END_TO_END, ITL, MEDIAN, P90

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from visualization.pareto.frontier import Curve
    from visualization.pareto.points import Point, Quantity

NAMES = {MEDIAN: "median", P90: "p90", END_TO_END: "p90 of latency over output tokens", ITL: "1/ITL"}
FORMULAS = {
    MEDIAN: "1 / p50 of (last piece - first piece) / (output tokens - 1) of each request: half of them are as fast",
    P90: "1 / p90 of (last piece - first piece) / (output tokens - 1) of each request: 90% of them are as fast",
    END_TO_END: "1 / p90 of latency / output tokens of each request: the time to the first token counts (InferenceX)",
    ITL: "1 / mean of all gaps between pieces: a piece may have several tokens",
}
UNIT = "tokens/s"
_MOST_CLAUSES = 4
NEEDED = f"more requests are needed, in {LEAST_BLOCKS} seconds or more of one load"


@dataclass(frozen=True, slots=True)
class Answer:
    """The points by one ``speed`` and one ``throughput``; ``frontier``: the numbers of those that none dominates.

    ``best``: which configuration is better at which speed by what was measured; ``sure``: where the 95% intervals
    decide it, which none does
    beside a point that has none; None where no point has any. ``curves``: of each configuration with a usable point.
    """

    speed: str
    throughput: str
    frontier: tuple[int, ...]
    curves: dict[str, Curve]
    best: tuple[Stretch, ...]
    sure: tuple[Stretch, ...] | None

    @property
    def shared(self) -> float:
        """The highest speed that several configurations have."""
        return max((each.high for each in self.best if not each.alone), default=0.0)

    @property
    def open(self) -> tuple[tuple[float, float], ...]:
        """The speeds at which the intervals do not decide, of those that several configurations have."""
        return tuple((each.low, each.high) for each in self._judged if each.best is None)

    @property
    def decided(self) -> list[Stretch]:
        """The speeds at which they do, and who is better there."""
        return [each for each in self._judged if each.best is not None]

    @property
    def is_open(self) -> bool:
        """Tells whether intervals decide at no speed that several configurations have, or there are none."""
        return not self.decided

    @property
    def contested(self) -> list[Stretch]:
        """The better one by what was measured, at the speeds that several configurations have; None where none is."""
        return _joined(each for each in self.best if not each.alone)

    @property
    def measured(self) -> list[Stretch]:
        """The same where one is."""
        return [each for each in self.contested if each.best is not None]

    @property
    def _judged(self) -> list[Stretch]:
        sure = (Stretch(0.0, self.shared, None),) if self.sure is None else self.sure
        return [Stretch(e.low, min(e.high, self.shared), e.best) for e in sure if e.low < self.shared]


def answer_of(points: Sequence[Point], speed: str, throughput: str) -> Answer:
    """The answer of the points that have both values, and of which nothing is doubtful."""
    usable = {
        number: (point.speeds[speed], point.per_gpu[throughput])
        for number, point in enumerate(points)
        if not point.unusable and speed in point.speeds and throughput in point.rates
    }
    numbers = list(usable)
    names = dict.fromkeys(points[number].configuration.name for number in numbers)

    def curves(end: str) -> dict[str, Curve]:
        return {
            name: curve_of(
                [(_end(x, end), _end(y, end)) for n, (x, y) in usable.items() if points[n].configuration.name == name]
            )
            for name in names
        }

    measured, unknown = curves("value"), []
    for number, (x, y) in usable.items():
        curve = measured[points[number].configuration.name]
        if not (_is_bounded(x) and _is_bounded(y)) and (x.value, y.value) in curve:
            unknown.append(beside(curve, x.value))
    known = sum(map(len, measured.values())) > len(unknown)
    return Answer(
        speed,
        throughput,
        tuple(numbers[place] for place in frontier([(x.value, y.value) for x, y in usable.values()])),
        measured,
        tuple(stretches(measured)),
        tuple(sure_stretches(curves("low"), curves("high"), unknown)) if known and len(names) > 1 else None,
    )


def _is_bounded(quantity: Quantity) -> bool:
    return quantity.low is not None and quantity.high is not None


def _end(quantity: Quantity, end: str) -> float:
    """An end of the interval; the value where there is none."""
    found: float | None = getattr(quantity, end)
    return quantity.value if found is None else found


def sentence(answer: Answer, points: Sequence[Point]) -> str:
    """The answer for whoever reads one line: who is better where the intervals decide, and where they do not."""
    if not answer.curves:
        return "No point is usable."
    what = f"{'' if answer.throughput == 'total' else 'output '}tokens/s/GPU"
    if len(answer.curves) == 1:
        return _of_one(answer, points, f"total {what}" if answer.throughput == "total" else what)
    by = NAMES[answer.speed]
    same = f"at the same {by} speed" if answer.speed in (MEDIAN, P90) else f"at the same speed by {by}"
    more = f"more {'total ' * (answer.throughput == 'total')}{what} {same}"
    last = answer.best[-1]
    alone = f" Above {number_text(last.low)} {UNIT} only {last.best} was measured." if last.alone else ""
    if answer.is_open:
        both = "both" if len(answer.curves) == 2 else "several"
        undecided = f"the intervals decide at no speed that {both} have"
        why = "no point has an interval" if answer.sure is None else undecided
        return f"Cannot tell which is better: {why}. As measured, {_better(answer.measured, answer)}.{alone}"
    undecided = _listed(_undecided(answer))
    rest = f" The intervals do not decide {undecided}." if undecided else ""
    return f"{_better(answer.decided, answer)}: {more}.{rest}{alone}"


def caveats(answer: Answer) -> Iterator[str]:
    """Sentences on all for which the answer may be another one: no intervals, no points."""
    if len(answer.curves) < 2:
        return
    first = next((each for each in answer.best if each.best is not None), None)
    for name, curve in answer.curves.items():
        if first is not None and name != first.best and curve[0][0] >= first.high:
            yield f"{name} was not measured below {number_text(curve[0][0])} {UNIT}"
    if answer.sure is None:
        yield f"To tell which is better, {NEEDED}"


def _of_one(answer: Answer, points: Sequence[Point], what: str) -> str:
    (name,) = answer.curves
    usable = sum(not point.unusable and answer.speed in point.speeds for point in points)
    chosen = [points[number] for number in answer.frontier]
    ends = [
        f"{number_text(point.per_gpu[answer.throughput].value)} {what} for users at "
        f"{number_text(point.speeds[answer.speed].value)} {UNIT}"
        for point in sorted(chosen, key=lambda point: point.speeds[answer.speed].value)
    ]
    whole = f" to {ends[-1].replace(f' {what}', '')}" if len(ends) > 1 else ""
    verb = "is" if len(chosen) == 1 else "are"
    some = f"{len(chosen)} of {pluralize(usable, 'point', 'points')} {verb} on the frontier"
    return f"{name}: {ends[0]}{whole}; {some}."


def _better(claims: Sequence[Stretch], answer: Answer) -> str:
    """``A is better for every user slower than 42 tokens/s (95%: 38 to 46), B beyond``."""
    return _listed(_clauses(claims, answer)) or "all are as good"


def _clauses(claims: Sequence[Stretch], answer: Answer) -> Iterator[str]:
    """A clause for each stretch at which one is better; two of them share the speed where one follows the other."""
    before: Stretch | None = None
    for each, after in zip_longest(claims, claims[1:]):
        switch = None if after is None else _switch(each, after, answer)
        ends_with_all = each.high >= answer.shared
        end = switch or f"{number_text(each.high, each.low)} {UNIT}"
        if each.low == 0:
            where = "at every speed that the others reach" if ends_with_all else f"for every user slower than {end}"
        elif before is not None and _switch(before, each, answer):
            where = "beyond" if ends_with_all else f"from there to {end}"
        else:
            begin = number_text(each.low, each.high)
            where = f"from {begin} {UNIT} on" if ends_with_all else f"from {begin} to {end}"
        yield f"{_who(each, before)} {where}"
        before = each


def _who(claim: Stretch, before: Stretch | None) -> str:
    if before is None:
        return f"{claim.best} is better"
    return "and again" if claim.best == before.best else str(claim.best)


def _switch(one: Stretch, other: Stretch, answer: Answer) -> str | None:
    """The speed from which another is better, with the speeds at which the intervals do not decide.

    None where more than one such speed was measured between both, or none: which of them it is, is not decided.
    """
    if one.high == other.low:
        return f"{number_text(one.high)} {UNIT}"
    changes = [each for each in pairwise(answer.contested) if one.high <= each[0].high <= other.low]
    if [(before.best, after.best) for before, after in changes] != [(one.best, other.best)]:
        return None
    width = other.low - one.high
    low, middle, high = (supported(each, width) for each in (one.high, changes[0][0].high, other.low))
    return f"{middle} {UNIT} (95%: {low} to {high})"


def _undecided(answer: Answer) -> Iterator[str]:
    """The speeds at which the intervals do not decide, but those around one at which another becomes better."""
    claims = answer.decided
    around = {(one.high, other.low) for one, other in pairwise(claims) if _switch(one, other, answer)}
    for low, high in answer.open:
        if (low, high) not in around:
            end = number_text(high, low)
            yield f"from {number_text(low, high)} to {end} {UNIT}" if low else f"below {end} {UNIT}"


def _listed(texts: Iterable[str]) -> str:
    """As many of them as a line has room for."""
    found = list(texts)
    more = ["and so on (see the page)"] * (len(found) > _MOST_CLAUSES)
    return ", ".join([*found[:_MOST_CLAUSES], *more])


def _joined(contested: Iterable[Stretch]) -> list[Stretch]:
    """Neighbours of one best configuration as one."""
    found: list[Stretch] = []
    for each in contested:
        if found and found[-1].best == each.best:
            found[-1] = Stretch(found[-1].low, each.high, each.best)
        else:
            found.append(each)
    return found
