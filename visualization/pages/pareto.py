"""A frontier -> figures: who is better for whom, every point with its interval, the other speeds, and the cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import money_text, number_text, pluralize
from visualization.figures.figures import Axis, Card, Curves, Figures, Line, Section, Table, TableRow
from visualization.pages.series import made_plain
from visualization.pareto.answer import FORMULAS, NAMES
from visualization.pareto.frontier import envelope
from visualization.pareto.measuring import OUTPUT, TOTAL
from visualization.pareto.points import MEDIAN, P90
from visualization.pareto.text import MARKS, both, kinds_priced, mark, money

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from visualization.figures.figures import Cross, Scale, Tone
    from visualization.pareto.answer import Answer
    from visualization.pareto.points import Quantity
    from visualization.pareto.result import Pareto

_FOOTER = (
    "Tokens are those of successful requests. Crosses are 95% intervals, from the variation between seconds and, where "
    "a load was repeated, between waves. Between two points of a configuration its curve is a straight line; slower "
    "users get what its slowest point gives."
)
_READ = (
    "Up and to the right is better. The wide grey line is the upper edge of all curves. Grey points are dominated: "
    "another one is better both ways. ✗ marks points that are not usable. A shaded stretch: the 95% intervals do not "
    "decide there."
)
_PER_GPU = {OUTPUT: "Output tokens/s/GPU", TOTAL: "Input and output tokens/s/GPU"}
_COST = "A million {} tokens"
_WIDE = 20.0  # from where the largest cost is so many times the smallest, the axis is logarithmic


def pareto_figures(pareto: Pareto) -> Figures:
    """Everything that the page of a frontier shows."""
    names = [each.name for each in pareto.result.configurations]
    figures = Figures(
        runs=tuple(_card(name, pareto) for name in names),
        sections=tuple(each for each in _sections(pareto, names) if each.charts or each.tables),
        title="Pareto frontier",
        lead=pareto.result.headline,
        footer=_FOOTER,
    )
    plain: Figures = made_plain(figures)
    return plain


def _sections(pareto: Pareto, names: Sequence[str]) -> Iterator[Section]:
    charts = [_chart(pareto, names, pareto.answer(MEDIAN, kind)) for kind in (OUTPUT, TOTAL)]
    yield Section("frontier", "Speed and throughput", _READ, tuple(filter(None, charts)))
    yield Section("points", "Every point", f"{MARKS}.", (), tables=(_table(pareto, names),))
    others = [
        _chart(pareto, names, pareto.answer(speed, OUTPUT), by_speed=True) for speed in FORMULAS if speed != MEDIAN
    ]
    text = ". ".join(f"{NAMES[speed]}: {formula}" for speed, formula in FORMULAS.items())
    yield Section("speeds", "By other speeds", f"{text}.", tuple(filter(None, others)))
    costs = [_cost_chart(pareto, names, kind) for kind in kinds_priced(pareto)]
    yield Section("cost", "Cost", _money(pareto), tuple(filter(None, costs)))


def _card(name: str, pareto: Pareto) -> Card:
    """The numbers to know first of a configuration."""
    points = [point for point in pareto.points if point.configuration.name == name]
    doubtful = sum(bool(point.unusable) for point in points)
    own = next(each for each in pareto.result.configurations if each.name == name)
    cost = [] if own.cost_hour is None else [f"{money_text(own.cost_hour, own.currency)} per hour"]
    usable = sum(not point.unusable and bool(point.speeds) for point in points)
    return Card(
        label=name,
        verdict=f"{usable} of {pluralize(len(points), 'point', 'points')} usable",
        doubtful=not usable,
        missed=bool(doubtful),
        facts=(pluralize(own.gpus, "GPU", "GPUs"), *cost),
        headline=tuple(_headline(name, pareto)),
        hover=(),
        findings=(),
        problems=(),
    )


def _headline(name: str, pareto: Pareto) -> Iterator[tuple[str, str]]:
    answer = pareto.answer(MEDIAN, OUTPUT)
    curve = answer.curves.get(name, ())
    if not curve:
        return
    if len(answer.curves) > 1:
        ranges = [f"{number_text(each.low)}–{number_text(each.high)}" for each in answer.decided if each.best == name]
        alone = [f"over {number_text(each.low)} (alone)" for each in answer.best if each.alone and each.best == name]
        yield "better at, tokens/s", ", ".join([*ranges, *alone]) or "none"
    yield "fastest, tokens/s", number_text(curve[-1][0])
    yield "most output/s/GPU", number_text(curve[0][1])
    found = [
        costs[OUTPUT]
        for point, costs in zip(pareto.points, pareto.costs, strict=True)
        if point.configuration.name == name and not point.unusable and OUTPUT in costs
    ]
    if found:
        currency = next(each.currency for each in pareto.result.configurations if each.name == name)
        yield "least per 1M output", money_text(min(found), currency)


def _chart(pareto: Pareto, names: Sequence[str], answer: Answer, *, by_speed: bool = False) -> Curves | None:
    """The points by one speed and one kind of tokens; None where no point has both."""
    shown = [
        number
        for number, point in enumerate(pareto.points)
        if answer.speed in point.speeds and answer.throughput in point.rates
    ]
    if not shown:
        return None
    bad = [number for number in shown if pareto.points[number].unusable]
    faint = [number for number in shown if number not in bad and number not in answer.frontier]
    on = sorted(answer.frontier, key=lambda number: pareto.points[number].speeds[answer.speed].value)
    curves = tuple(Line(names.index(name), "", curve, tone="bare") for name, curve in answer.curves.items())
    marked: tuple[tuple[Sequence[int], Tone], ...] = ((bad, "bad"), (faint, "faint"), (on, "chosen"))
    edge = (Line(None, "", envelope(answer.curves, answer.best), tone="frontier"),) if answer.best else ()
    lines = (*(_across(pareto, names, answer, numbers, tone) for numbers, tone in marked if numbers),)
    per_gpu = _PER_GPU[answer.throughput]
    return Curves(
        f"By {NAMES[answer.speed]}" if by_speed else per_gpu,
        Axis("Speed of a user" if by_speed else "Median speed of a user", "tokens/s"),
        Axis(per_gpu, ""),
        (*edge, *curves, *lines),
        bands=tuple(_bands(answer)),
    )


def _bands(answer: Answer) -> Iterator[tuple[str, float, float]]:
    """The speeds at which the intervals do not decide; every other band is shaded, so what is between is one, too."""
    before: float | None = None
    for low, high in answer.open:
        if before is not None:
            yield "", before, low
        yield "undecided", low, high
        before = high


def _across(pareto: Pareto, names: Sequence[str], answer: Answer, numbers: Sequence[int], tone: Tone) -> Line:
    points = [pareto.points[number] for number in numbers]
    pairs = [(point.speeds[answer.speed], point.per_gpu[answer.throughput]) for point in points]
    return Line(
        None,
        "",
        tuple((x.value, y.value) for x, y in pairs),
        over=tuple(names.index(point.configuration.name) for point in points),
        tone=tone,
        crosses=tuple(_cross(x, y) for x, y in pairs),
        texts=tuple(", ".join([point.load, *point.unusable]) for point in points),
    )


def _cross(x: Quantity, y: Quantity) -> Cross:
    return (x.low, x.high, y.low, y.high)


def _table(pareto: Pareto, names: Sequence[str]) -> Table:
    kinds = kinds_priced(pareto)
    head = ("Load", "frontier", "median", "95%", P90, "output/s/GPU", "95%", "total/s/GPU", "tokens in", "tokens out")
    on = pareto.answer(MEDIAN, OUTPUT).frontier
    rows = [
        TableRow(
            (
                f"{point.configuration.name}, {point.load}",
                " ".join([mark(point, is_on=number in on), ", ".join(point.unusable)]).strip(),
                *both(point.speeds.get(MEDIAN)),
                both(point.speeds.get(P90))[0],
                *both(point.per_gpu.get(OUTPUT)),
                both(point.per_gpu.get(TOTAL))[0],
                *("-" if each is None else number_text(each) for each in (point.tokens_in, point.tokens_out)),
                *(money(costs.get(kind), point) for kind in kinds),
            ),
            run=names.index(point.configuration.name),
            strong=number in on,
        )
        for number, (point, costs) in enumerate(zip(pareto.points, pareto.costs, strict=True))
    ]
    notes = tuple(f"{each}." for each in pareto.result.remarks)
    return Table("", (*head, *(f"1M {kind}" for kind in kinds)), tuple(rows), notes)


def _cost_chart(pareto: Pareto, names: Sequence[str], kind: str) -> Curves | None:
    """The cost of a million tokens of a kind against the speed of a user."""
    found = [
        (names.index(point.configuration.name), point, costs[kind])
        for point, costs in zip(pareto.points, pareto.costs, strict=True)
        if kind in costs and MEDIAN in point.speeds and not point.unusable
    ]
    lines = tuple(
        Line(run, "", tuple(sorted((p.speeds[MEDIAN].value, cost) for at, p, cost in found if at == run)), marked=True)
        for run in dict.fromkeys(run for run, *_ in found)
    )
    if not lines:
        return None
    currency = found[0][1].configuration.currency
    costs = [cost for *_, cost in found]
    scale: Scale = "log" if min(costs) > 0 and max(costs) > _WIDE * min(costs) else "linear"
    title = _COST.format(kind.replace(TOTAL, "input and output"))
    return Curves(title, Axis("Median speed of a user", "tokens/s"), Axis(title, currency, scale), lines)


def _money(pareto: Pareto) -> str:
    """The sentences on money, of which those on how it is divided come first."""
    return " ".join(f"{each}." for each in pareto.result.remarks if "ost" in each)
