"""A ranking of variants -> figures: what each holds, what the target costs with it, and the curves of all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.system.given import resolved
from inference_benchmarker.words.wording import duration_text, metric_text, money_text, supported
from visualization.figures.capacity import Capacity, capacity_card, is_capacity, read_capacities
from visualization.figures.capacity_figures import capacity_sections
from visualization.figures.figures import Bar, Bars, Card, Figures, Section, Table, TableRow
from visualization.pages.series import made_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.price import Price
    from server_capacity.results.types.ranking import By, RankedRow, RankingResult

_FOOTER = (
    "Bars start at zero. A bracket is the 95% interval of a capacity, or what follows from its two ends. = marks "
    "ties: the intervals do not decide which is better. ≥ and ≤ mark bounds: no limit was violated."
)
_MONEY = ("cost_hour", "cost_per_million", "cost_per_million_output")
_KINDS = ("input", "cached", "output")


def ranking_figures(found: RankingResult, folder: Path, read: Callable[[Path], CapacityResult]) -> Figures:
    """Everything that the page of a ranking's folder shows. ``read`` raises BenchmarkError for a damaged search."""
    searched, cards = _searched(folder, found.rows, read)
    runs = {place: run for run, (place, _) in enumerate(searched)}
    sections = (_costs(found, searched), *_curves([capacity for _, capacity in searched]))
    figures = Figures(
        runs=cards,
        sections=tuple(section for section in sections if section.charts),
        statistic="p99",
        title="Ranking",
        lead=found.headline,
        answer=(_table(found, runs),),
        footer=_FOOTER,
    )
    plain: Figures = made_plain(figures)
    return plain


def _searched(
    folder: Path, rows: Sequence[RankedRow], read: Callable[[Path], CapacityResult]
) -> tuple[list[tuple[int, Capacity]], tuple[Card, ...]]:
    """The place in the ranking and the search of each variant that has one, in their order; and their cards."""
    found = []
    for place, row in enumerate(rows):
        path = folder / str(row.capacity)
        if row.capacity and is_capacity(path):
            (capacity,) = read_capacities([path], {resolved(path).name: {"legend": _label(row)}}, read)
            found.append((place, replace(capacity, label=_label(row), hover=())))
    return found, tuple(capacity_card(capacity) for _, capacity in found)


def _label(row: RankedRow) -> str:
    return row.label or ", ".join(row.variant.values())


def _table(data: RankingResult, runs: Mapping[int, int]) -> Table:
    """A row for each variant, the first one chosen where nobody ties with it."""
    targeted, priced = data.target_rps is not None, any(row.cost_hour is not None for row in data.rows)
    head = ["Variant", "rank", "capacity", *(["instances"] if targeted else [])]
    head += ["per hour", "per month", "per 1M req"] if priced else []
    by_kind = any(row.token_costs is not None for row in data.rows)
    head += [f"per 1M {kind}" for kind in _KINDS] if by_kind else []
    head += ["answers"] if any(row.answers is not None for row in data.rows) else []
    head += ["95%", "p99 there", "used"]
    found = []
    for place, row in enumerate(data.rows):
        needed = [*(_needed_instances(row) if targeted else []), *(_amounts(row) if priced else [])]
        needed += _token_amounts(row) if by_kind else []
        needed += [_answers(row)] if "answers" in head else []
        holds, *others = _measured(row)
        cells = [_label(row), _rank(row), holds, *needed, *others, _used(row)]
        strong = place == 0 and bool(row.rank) and not row.tied_with
        found.append(TableRow(tuple(cells), runs.get(place), strong, _rate_bar(row)))
    return Table("", tuple(head), tuple(found), tuple(_notes(data)), bar_at=head.index("95%"))


def _rank(row: RankedRow) -> str:
    """Its rank; of a variant without an answer the outcome."""
    if not row.rank:
        return "other answers" if _answers(row) == "differ" else row.outcome.replace("_", " ")
    return f"{row.rank}{'=' if row.tied_with else ''}{'?' if row.warnings else ''}"


def _measured(row: RankedRow) -> list[str]:
    """Rate, interval and p99; also of a variant whose answers are others."""
    if not row.rank and _answers(row) != "differ":
        return ["-", "-", "-"]
    rate, interval = row.rate, row.interval
    p99 = None if row.latency is None else row.latency.p99
    width = (interval.high - interval.low if interval else 0.0) or abs(rate or 0.0) / 20
    ends = f"{supported(interval.low, width)}–{supported(interval.high, width)}" if interval else "no upper end"
    return [
        "-" if rate is None else f"{'' if interval else '≥ '}{supported(rate, width)}/s",
        ends,
        "-" if p99 is None else f"{'' if _p99_is_measured(row) else '~'}{duration_text(p99)}",
    ]


def _used(row: RankedRow) -> str:
    """The use of GPUs, else of processors, as the server reported it at the lower end."""
    fields = row.server_utilisation or {}
    used = next((fields[name] for name in ("GPUUtilization", "CPUUtilization") if name in fields), None)
    if used is None or not row.rank:
        return "-"
    return f"{used.at_low:.0%}" if used.unit == "share" else f"{metric_text(used.at_low)}{used.unit or ''}"


def _p99_is_measured(row: RankedRow) -> bool:
    """Tells whether a wave at the lower end measured the p99 there."""
    return row.latency is not None and row.latency.p99_measured


def _needed_instances(row: RankedRow) -> list[str]:
    return ["-" if row.instances_for_target is None else f"{row.instances_for_target:,}"]


def _amounts(row: RankedRow) -> list[str]:
    return _money(row, (row.cost_hour, row.cost_month, row.cost_per_million))


def _token_amounts(row: RankedRow) -> list[str]:
    """The cost of a million tokens of each kind at the interval's lower end."""
    return _money(row, [getattr(row.token_costs, kind, None) for kind in _KINDS])


def _money(row: RankedRow, values: Sequence[float | None]) -> list[str]:
    return ["-" if value is None else money_text(value, _currency(row)) for value in values]


def _answers(row: RankedRow) -> str:
    equal = None if row.answers is None else row.answers.equal
    return "undecided" if equal is None else "equal" if equal else "differ"


def _currency(row: RankedRow) -> str:
    return "USD" if row.price is None else row.price.currency


def _rate_bar(row: RankedRow) -> Bar | None:
    if row.rate is None or not row.rank:
        return None
    return Bar(row.rate, row.interval.low, row.interval.high) if row.interval else Bar(row.rate, sign="≥")


def _notes(data: RankingResult) -> Iterator[str]:
    """The sentences that the table needs."""
    rows = data.rows
    if limits := ", ".join(dict.fromkeys(row.limit for row in rows if row.rank and row.limit)):
        yield f"The limit that is violated first: {limits}. p99 and used are at the interval's lower end."
    if data.target_rps is not None:
        yield (
            f"Instances: as many as {metric_text(data.target_rps)}/s need, each at no more than "
            f"{data.utilisation:.0%} of the interval's lower end."
        )
    if any(row.latency and row.latency.p99 is not None and not _p99_is_measured(row) for row in rows):
        yield "~ is interpolated between neighbouring rates: no wave at the lower end measured p99."
    if any(row.tied_with for row in rows):
        yield "= ties: the intervals do not decide which is better."
    yield from _warnings(data)
    if prices := dict.fromkeys(_price(row.price) for row in rows if row.price is not None):
        yield f"Hourly prices of an instance: {'; '.join(prices)}. A month has 730 hours."
    if any(row.token_costs is not None for row in rows):
        yield "per 1M input, cached, output: the whole cost at the interval's lower end over the tokens of that kind."
    yield from data.remarks
    if data.payload_variants and data.payload_variants.text != data.headline:
        yield data.payload_variants.text
    for row in rows:
        if not row.rank:
            yield f"✗ {_label(row)}: {'; '.join([*row.warnings, row.headline])}"


def _warnings(data: RankingResult) -> Iterator[str]:
    """Yields a note on all that a search leaves open and the headline, above the table, does not say."""
    for row in data.rows:
        open_ones = [each for each in row.warnings if each not in data.headline]
        if row.rank and open_ones:
            yield f"? {_label(row)}: {'; '.join(open_ones)}."


def _price(price: Price) -> str:
    beside = ", ".join(filter(None, (price.region, price.source, price.date)))
    return f"{price.instance_type} {price.per_hour:g} {price.currency} per hour ({beside})"


def _costs(data: RankingResult, searched: Sequence[tuple[int, Capacity]]) -> Section:
    """The number that gives the order, from both ends of each interval; and the capacities themselves."""
    by, charts = data.ranked_by, []
    rows = [data.rows[place] for place, _ in searched]
    title, unit = _TITLES[by]
    currency = _currency(rows[0]) if rows and by in _MONEY else ""
    charts.append(Bars(title, title, currency or unit, "ranking", {"": tuple(_score_bar(row, by) for row in rows)}))
    if by != "rate":
        held = tuple(_rate_bar(row) or Bar(note=row.headline) for row in rows)
        charts.append(Bars("Capacity", "Capacity", "/s", "ranking", {"": held}))
    for_target = f" for {metric_text(data.target_rps)}/s" if data.target_rps is not None else ""
    text = f"By the lower end of each capacity's interval{for_target}; a bracket goes from one end to the other."
    return Section("cost", "Side by side", text, tuple(each for each in charts if each.measured))


_TITLES = {
    "cost_hour": ("Hourly cost for the target", ""),
    "instances_for_target": ("Instances for the target", ""),
    "cost_per_million": ("Cost per million requests", ""),
    "cost_per_million_output": ("Cost per million output tokens", ""),
    "rate": ("Capacity of an instance", "/s"),
}


def _score_bar(row: RankedRow, by: By) -> Bar:
    """The score that is sure, from the best that it may be to the worst."""
    if row.score is None:
        return Bar(note=row.headline)
    best, value = row.score.best, row.score.worst
    if row.interval is None:
        return Bar(value, sign="≥" if by == "rate" else "≤")
    return Bar(value) if best is None else Bar(value, min(best, value), max(best, value))


def _curves(capacities: Sequence[Capacity]) -> Iterator[Section]:
    for section in capacity_sections(capacities, first=0):
        if section.key == "curve":
            text = "One point per offered rate, over the time that counts; the horizontal line is the limit."
            yield replace(section, title="The curves", text=text)
