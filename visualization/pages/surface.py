"""A surface -> figures: capacity against the length of answers, a curve for each length of prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import pluralize, rate_text
from visualization.figures.figures import Axis, Card, Curves, Figures, Line, Section, Table, TableRow
from visualization.pages.series import made_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from server_capacity.results.types.bounds import Interval
    from server_capacity.results.types.surface import Doubled, PredictedPoint, SearchedPoint, SurfaceResult

_READ = (
    "A curve is the predicted capacity with prompts of one length; its 95% intervals are in the table. A point is "
    "a search that was held out, with its interval, and a grey one a search that the fit was made of."
)
_FOOTER = "Capacities between searches are of an engine fitted to them, simulated with random arrivals."


def surface_figures(found: SurfaceResult, doubled: Callable[[Doubled], str]) -> Figures:
    """Everything that the page of a surface shows; ``doubled``: the sentence on lengths that are doubled."""
    prompts = sorted({row.input_tokens for row in _rows(found)})
    figures = Figures(
        runs=tuple(_card(prompt, found) for prompt in prompts),
        sections=tuple(each for each in _sections(found, prompts, doubled) if each.charts or each.tables),
        title="Capacity by length",
        lead=found.headline,
        footer=_FOOTER,
    )
    plain: Figures = made_plain(figures)
    return plain


def _rows(found: SurfaceResult) -> list[SearchedPoint | PredictedPoint]:
    return [*found.searches, *found.grid]


def _card(prompt: int, found: SurfaceResult) -> Card:
    searches = [row for row in found.searches if row.input_tokens == prompt]
    rates = [row.rate for row in _rows(found) if row.input_tokens == prompt and row.rate is not None]
    span = f"{rate_text(min(rates))} to {rate_text(max(rates))}" if rates else "-"
    return Card(
        label=f"{prompt:,} input tokens",
        verdict=f"{pluralize(len(searches), 'search', 'searches')}",
        doubtful=False,
        missed=any(row.exit_code for row in searches),
        facts=(),
        headline=(("capacity", span),),
        hover=(),
        findings=(),
        problems=(),
    )


def _sections(found: SurfaceResult, prompts: Sequence[int], doubled: Callable[[Doubled], str]) -> Iterator[Section]:
    text = " ".join([*(f"{doubled(row)}." for row in found.what_if), _READ])
    yield Section("surface", "Capacity by length", text, (_chart(found, prompts),), tables=(_searches(found, prompts),))
    yield Section("grid", "Predicted capacities", "", (), tables=(_grid(found, prompts),) if found.grid else ())


def _chart(found: SurfaceResult, prompts: Sequence[int]) -> Curves:
    curves = [
        _line(prompts.index(prompt), [row for row in found.grid if row.input_tokens == prompt and row.rate])
        for prompt in prompts
    ]
    searched = [
        Line(
            None,
            "",
            tuple((float(row.output_tokens), row.rate) for row in rows),
            over=tuple(prompts.index(row.input_tokens) for row in rows),
            tone="chosen" if use == "held_out" else "faint",
            crosses=tuple(_cross(row.interval) for row in rows),
            texts=tuple(f"{row.input_tokens}x{row.output_tokens}, search" for row in rows),
        )
        for use in ("fit", "held_out")
        if (rows := [row for row in found.searches if row.use == use and row.rate])
    ]
    lines = (*(line for line in curves if line.points), *searched)
    return Curves("Capacity", Axis("Output tokens", "", "log"), Axis("Capacity", "requests/s", "log"), lines)


def _line(run: int, rows: Sequence[PredictedPoint]) -> Line:
    return Line(run, "", tuple((float(row.output_tokens), row.rate) for row in rows), tone="bare")


def _cross(interval: Interval | None) -> tuple[None, None, float | None, float | None]:
    return (None, None, interval.low, interval.high) if interval else (None, None, None, None)


def _ends(interval: Interval | None) -> str:
    return "-" if interval is None else f"{rate_text(interval.low)} to {rate_text(interval.high)}"


def _searches(found: SurfaceResult, prompts: Sequence[int]) -> Table:
    return Table(
        "Searches",
        ("Lengths", "for", "capacity", "95% interval", "the fit says"),
        tuple(_searched(row, prompts.index(row.input_tokens)) for row in found.searches),
    )


def _searched(row: SearchedPoint, run: int) -> TableRow:
    rate = "-" if row.rate is None else rate_text(row.rate)
    use = row.use.replace("_", " ")
    cells = (f"{row.input_tokens}x{row.output_tokens}", use, rate, _ends(row.interval), _ends(row.predicted))
    return TableRow(cells, run=run)


def _grid(found: SurfaceResult, prompts: Sequence[int]) -> Table:
    rows = [
        TableRow(
            (
                f"{row.input_tokens}x{row.output_tokens}",
                "-" if row.rate is None else rate_text(row.rate),
                _ends(row.interval),
                row.beyond,
            ),
            run=prompts.index(row.input_tokens),
        )
        for row in found.grid
    ]
    return Table("", ("Lengths", "capacity", "95% interval", "no capacity, since it takes"), tuple(rows))
