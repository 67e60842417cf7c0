"""A ranking of variants -> figures: what each holds, what the target costs with it, and the curves of all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_file import read_json
from inference_benchmarker.words.wording import duration_text, metric_text, money_text, supported
from visualization.figures.capacity import Capacity, capacity_card, is_capacity, read_capacities
from visualization.figures.capacity_figures import capacity_sections
from visualization.figures.figures import Bar, Bars, Card, Figures, Row, Section, Table
from visualization.figures.runs import number
from visualization.pages.series import made_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

RANKING_FILE = "ranking.json"
_FOOTER = (
    "Bars start at zero. A bracket is the 95% interval of a capacity, or what follows from its two ends. = marks ties: "
    "the intervals do not tell which is better. ≥ and ≤ mark bounds: no limit gave out."
)
_MONEY = ("cost_hour", "cost_per_million")


def ranking_figures(folder: Path) -> Figures:
    """Everything that the page of a ranking's folder shows. Raises BenchmarkError for a damaged file."""
    data = read_json(folder / RANKING_FILE)
    rows = [row for row in data.get("rows") or [] if isinstance(row, dict)]
    searched, cards = _searched(folder, rows)
    runs = {place: run for run, (place, _) in enumerate(searched)}
    sections = (_costs(data, searched), *_curves([capacity for _, capacity in searched]))
    figures = Figures(
        runs=cards,
        sections=tuple(section for section in sections if section.charts),
        statistic="p99",
        title="Ranking",
        lead=str(data.get("headline") or ""),
        answer=(_table(data, rows, runs),),
        footer=_FOOTER,
    )
    plain: Figures = made_plain(figures)
    return plain


def _searched(folder: Path, rows: Sequence[dict[str, Any]]) -> tuple[list[tuple[int, Capacity]], tuple[Card, ...]]:
    """The place in the ranking and the search of each variant that has one, in their order; and their cards."""
    found = []
    for place, row in enumerate(rows):
        path = folder / str(row.get("capacity"))
        if row.get("capacity") and is_capacity(path):
            (capacity,) = read_capacities([path], {path.resolve().name: {"legend": _label(row)}})
            found.append((place, replace(capacity, label=_label(row), hover=())))
    return found, tuple(capacity_card(capacity) for _, capacity in found)


def _label(row: Mapping[str, Any]) -> str:
    values = row.get("variant")
    return str(row.get("label") or ", ".join(map(str, values.values() if isinstance(values, dict) else ())))


def _table(data: Mapping[str, Any], rows: Sequence[dict[str, Any]], runs: Mapping[int, int]) -> Table:
    """A row for each variant, the first one chosen where nobody ties with it."""
    targeted, priced = data.get("target_rps") is not None, any(number(row, "cost_hour") is not None for row in rows)
    head = ["Variant", "rank", "holds", *(["instances"] if targeted else [])]
    head += ["an hour", "a month", "per million"] if priced else []
    head += ["95%", "p99 there", "used"]
    found = []
    for place, row in enumerate(rows):
        needed = [*(_counted(row) if targeted else []), *(_amounts(row) if priced else [])]
        holds, *others = _measured(row)
        cells = [_label(row), _rank(row), holds, *needed, *others, _used(row)]
        strong = place == 0 and bool(row.get("rank")) and not row.get("tied_with")
        found.append(Row(tuple(cells), runs.get(place), strong, _rate_bar(row)))
    return Table("", tuple(head), tuple(found), tuple(_notes(data, rows)), bar_at=head.index("95%"))


def _rank(row: Mapping[str, Any]) -> str:
    """Its rank; of a variant without an answer the outcome."""
    if not row.get("rank"):
        return str(row.get("outcome") or "").replace("_", " ")
    return f"{row['rank']}{'=' if row.get('tied_with') else ''}{'?' if row.get('warnings') else ''}"


def _measured(row: Mapping[str, Any]) -> list[str]:
    """Rate, interval and p99."""
    if not row.get("rank"):
        return ["-", "-", "-"]
    rate, low, high = number(row, "rate"), number(row, "interval", "low"), number(row, "interval", "high")
    p99 = number(row, "latency", "p99")
    width = (high - low if low is not None and high is not None else 0.0) or abs(rate or 0.0) / 20
    ends = "no upper end" if low is None or high is None else f"{supported(low, width)}–{supported(high, width)}"
    return [
        "-" if rate is None else f"{'≥ ' if low is None else ''}{supported(rate, width)}/s",
        ends,
        "-" if p99 is None else f"{'' if _p99_is_measured(row) else '~'}{duration_text(p99)}",
    ]


def _used(row: Mapping[str, Any]) -> str:
    """The use of GPUs, else of processors, as the server told it at the lower end."""
    for name in ("GPUUtilization", "CPUUtilization"):
        told = number(row, "server_utilisation", name, "at_low")
        if row.get("rank") and told is not None:
            unit = row["server_utilisation"][name].get("unit")
            return f"{told:.0%}" if unit == "share" else f"{metric_text(told)}{unit or ''}"
    return "-"


def _p99_is_measured(row: Mapping[str, Any]) -> bool:
    """Tells whether a wave at the lower end told the p99 there."""
    latency = row.get("latency")
    return isinstance(latency, dict) and latency.get("p99_measured") is True


def _counted(row: Mapping[str, Any]) -> list[str]:
    instances = number(row, "instances_for_target")
    return ["-" if instances is None else f"{instances:,.0f}"]


def _amounts(row: Mapping[str, Any]) -> list[str]:
    values = (number(row, key) for key in ("cost_hour", "cost_month", "cost_per_million"))
    return ["-" if value is None else money_text(value, _currency(row)) for value in values]


def _currency(row: Mapping[str, Any]) -> str:
    price = row.get("price")
    return str(price.get("currency") or "USD") if isinstance(price, dict) else "USD"


def _rate_bar(row: Mapping[str, Any]) -> Bar | None:
    rate = number(row, "rate") if row.get("rank") else None
    low, high = number(row, "interval", "low"), number(row, "interval", "high")
    return None if rate is None else Bar(rate, low, high, sign="≥" if low is None else "")


def _notes(data: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The sentences that the table needs."""
    limits = dict.fromkeys(str(row["limit"]) for row in rows if row.get("rank") and row.get("limit"))
    if limits:
        yield f"The limit that gives out first: {', '.join(limits)}. p99 there, used: at the interval's lower end."
    use = number(data, "utilisation")
    if data.get("target_rps") is not None and use is not None:
        yield (
            f"Instances: as many as it takes for {metric_text(number(data, 'target_rps'))}/s, each at {use:.0%} of the "
            "interval's lower end at most."
        )
    if any(number(row, "latency", "p99") is not None and not _p99_is_measured(row) for row in rows):
        yield "~ is taken between neighbouring rates: no wave at the lower end told its p99."
    if any(row.get("tied_with") for row in rows):
        yield "= ties: the intervals do not tell which of them is better."
    yield from _warnings(rows)
    if prices := dict.fromkeys(_price(row) for row in rows if isinstance(row.get("price"), dict)):
        yield f"Prices of an instance: {'; '.join(prices)}. A month has 730 hours."
    yield from map(str, data.get("remarks") or [])
    traffics = data.get("payload_variants")
    if isinstance(traffics, dict) and traffics.get("text") and traffics["text"] != data.get("headline"):
        yield str(traffics["text"])
    for row in rows:
        if not row.get("rank"):
            yield f"✗ {_label(row)}: {'; '.join([*map(str, row.get('warnings') or ()), str(row.get('headline'))])}"


def _warnings(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The clauses on what the searches of ranked rows leave open."""
    for row in rows:
        if row.get("rank") and row.get("warnings"):
            yield f"? {_label(row)}: {'; '.join(map(str, row['warnings']))}."


def _price(row: Mapping[str, Any]) -> str:
    price = row["price"]
    beside = ", ".join(str(price[key]) for key in ("region", "source", "date") if price.get(key))
    return f"{price.get('instance_type')} {number(price, 'per_hour') or 0:g} {_currency(row)} an hour ({beside})"


def _costs(data: Mapping[str, Any], searched: Sequence[tuple[int, Capacity]]) -> Section:
    """The number that gives the order, from both ends of each interval; and the capacities themselves."""
    by, charts = str(data.get("ranked_by")), []
    rows = [data["rows"][place] for place, _ in searched]
    if by in _TITLES:
        title, unit = _TITLES[by]
        currency = _currency(rows[0]) if rows and by in _MONEY else ""
        charts.append(Bars(title, title, currency or unit, "ranking", {"": tuple(_score_bar(row, by) for row in rows)}))
    if by != "rate":
        held = tuple(_rate_bar(row) or Bar(note=str(row.get("headline") or "")) for row in rows)
        charts.append(Bars("Capacity", "Capacity", "/s", "ranking", {"": held}))
    target = number(data, "target_rps")
    for_target = f" for {metric_text(target)}/s" if target is not None else ""
    text = f"By the lower end of each capacity's interval{for_target}; a bracket goes from one end to the other."
    return Section("cost", "Side by side", text, tuple(each for each in charts if each.measured))


_TITLES = {
    "cost_hour": ("Cost of an hour for the target", ""),
    "instances_for_target": ("Instances for the target", ""),
    "cost_per_million": ("Cost per million requests", ""),
    "rate": ("Rate of an instance", "/s"),
}


def _score_bar(row: Mapping[str, Any], by: str) -> Bar:
    """The score that is sure, from the best that it may be to the worst."""
    best, worst = number(row, "score", "best"), number(row, "score", "worst")
    value = worst if worst is not None else number(row, by)
    if value is None:
        return Bar(note=str(row.get("headline") or ""))
    if number(row, "interval", "low") is None:
        return Bar(value, sign="≥" if by == "rate" else "≤")
    return Bar(value) if best is None else Bar(value, min(best, value), max(best, value))


def _curves(capacities: Sequence[Capacity]) -> Iterator[Section]:
    for section in capacity_sections(capacities, first=0):
        if section.key == "curve":
            text = "A point for each rate that was offered, of the time that counts; the level line is the limit."
            yield replace(section, title="The curves", text=text)
