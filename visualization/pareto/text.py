"""The frontier in words: aligned text for a terminal, and a row a point for a spreadsheet."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from inference_benchmarker.words.csv_cells import CleanRows
from inference_benchmarker.words.text import folded, plain, wrapped
from inference_benchmarker.words.wording import INDENT, aligned, money_text, supported
from visualization.pareto.answer import FORMULAS, NAMES
from visualization.pareto.costs import KINDS as PRICED
from visualization.pareto.measuring import OUTPUT, TOTAL
from visualization.pareto.points import KINDS, MEDIAN, P90

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from visualization.pareto.points import Point, Quantity
    from visualization.pareto.result import Pareto

_TITLE = "PARETO – InferenceBenchmarker"
_WIDTH = 80
_NOTHING = "-"
ON, OFF, DOUBTFUL = "✓", "·", "✗"
MARKS = f"{ON} on the frontier; {OFF} another point is better both ways; {DOUBTFUL} not usable; {_NOTHING} no speed"


def to_text(pareto: Pareto, width: int | None = None) -> str:
    """For a terminal of ``width`` columns; without it the tables fit 80, and each sentence is a line of its own."""
    lines = [pareto.result.headline, "", _TITLE, "-" * len(_TITLE)]
    lines += [*aligned(list(_rows(pareto)), width or _WIDTH), ""]
    room = min(_WIDTH, width or _WIDTH)
    for sentence in _below(pareto):
        lines += wrapped(sentence, room, INDENT, INDENT)
    text = "\n".join(map(plain, lines))
    return (text if width is None else folded(text, width)) + "\n"


def _rows(pareto: Pareto) -> Iterator[list[str]]:
    kinds = kinds_priced(pareto)
    costs_head = (f"$/M {kind}" for kind in kinds)
    yield ["Run and load", "tokens/s", "95%", P90, "output/s/GPU", "95%", "total/s/GPU", *costs_head]
    on = pareto.answer(MEDIAN, OUTPUT).frontier
    for number, (point, costs) in enumerate(zip(pareto.points, pareto.costs, strict=True)):
        yield [
            f"{mark(point, is_on=number in on)} {called(point)}",
            *both(point.speeds.get(MEDIAN)),
            both(point.speeds.get(P90))[0],
            *both(point.per_gpu.get(OUTPUT)),
            both(point.per_gpu.get(TOTAL))[0],
            *(money(costs.get(kind), point) for kind in kinds),
        ]


def called(point: Point) -> str:
    """The name of a point: its configuration and its load."""
    return f"{point.configuration.name}, {point.load}"


def kinds_priced(pareto: Pareto) -> list[str]:
    """The kinds of tokens of which any point has a cost."""
    return [kind for kind in (*PRICED, TOTAL) if any(kind in costs for costs in pareto.costs)]


def both(quantity: Quantity | None) -> tuple[str, str]:
    """The value, to the digits that its interval supports, and that."""
    if quantity is None:
        return _NOTHING, _NOTHING
    low, high, value = quantity.low, quantity.high, quantity.value
    if low is None or high is None:
        return supported(value, value / 20), _NOTHING
    width = max(high - low, value / 200)  # more digits are of no use
    return supported(value, width), f"{supported(low, width)}–{supported(high, width)}"


def money(cost: float | None, point: Point) -> str:
    """The cost of a million tokens."""
    return _NOTHING if cost is None else money_text(cost, point.configuration.currency)


def mark(point: Point, *, is_on: bool) -> str:
    """The sign of a point."""
    if point.unusable:
        return DOUBTFUL
    if MEDIAN not in point.speeds or OUTPUT not in point.rates:
        return _NOTHING
    return ON if is_on else OFF


def _below(pareto: Pareto) -> Iterator[str]:
    """The explanation of the table, and the answers by the other speeds, each with its formula."""
    yield from (
        f"{DOUBTFUL} {called(point)}: {', '.join(point.unusable)}." for point in pareto.points if point.unusable
    )
    yield f"{MARKS}. tokens/s: of a user, the median. /s/GPU: of successful requests. 95%: intervals."
    yield from (f"! {each}." for each in pareto.result.remarks)
    yield from (f"{NAMES[speed]}: {formula}. {_answer(pareto, speed, OUTPUT)}" for speed, formula in FORMULAS.items())
    if text := _answer(pareto, MEDIAN, TOTAL):
        yield f"By all tokens: {text}"


def _answer(pareto: Pareto, speed: str, throughput: str) -> str:
    found = (each.text for each in pareto.result.answers if (each.speed, each.throughput) == (speed, throughput))
    return "" if (speed, throughput) == (MEDIAN, OUTPUT) else next(found, "")


_QUANTITIES = ("", "_low", "_high")
COLUMNS = (
    *("configuration", "load", "gpus", "unusable", "frontier_output", "frontier_total"),
    *(f"speed_{speed}{end}" for speed in FORMULAS for end in _QUANTITIES),
    *(f"{kind}_per_s_per_gpu{end}" for kind in KINDS for end in _QUANTITIES),
    *("tokens_in_per_request", "tokens_out_per_request", "cost_per_hour", "currency"),
    *(f"cost_per_million_{kind}" for kind in (*PRICED, TOTAL)),
    "runs",
)
"""The cells of a row, in this order; a cell is empty where nothing was measured."""


def to_csv(pareto: Pareto) -> str:
    """The head and a row for each point; a text of others is no formula."""
    file = io.StringIO()
    writer = CleanRows(csv.writer(file, lineterminator="\n"))
    writer.writerow(COLUMNS)
    fronts = [pareto.answer(MEDIAN, kind).frontier for kind in (OUTPUT, TOTAL)]
    for number, (point, costs) in enumerate(zip(pareto.points, pareto.costs, strict=True)):
        own, found = point.configuration, pareto.result.points[number]
        writer.writerow(
            [
                *(own.name, point.load, own.gpus, "; ".join(point.unusable), *(number in front for front in fronts)),
                *_ends(point.speeds.get(speed) for speed in FORMULAS),
                *_ends(point.per_gpu.get(kind) for kind in KINDS),
                *(point.tokens_in, point.tokens_out, own.hour, "" if own.hour is None else own.currency),
                *(costs.get(kind) for kind in (*PRICED, TOTAL)),
                "; ".join(found.runs),
            ]
        )
    return file.getvalue()


def _ends(quantities: Iterable[Quantity | None]) -> Sequence[float | None]:
    found: list[float | None] = []
    for each in quantities:
        found += [None, None, None] if each is None else [each.value, each.low, each.high]
    return found
