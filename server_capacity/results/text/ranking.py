"""A ranking in words: its answer, a table of 79 columns (more for rates of many digits), and what goes with it. Pure.

What is read here is the object of ``ranking.json``.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import OK
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.wording import INDENT, aligned, duration_text, metric_text
from server_capacity.results.text.headline import between, rate_text
from server_capacity.results.text.ranking_headline import headline, money_of, output_cost
from server_capacity.results.text.spend import spend_text
from server_capacity.results.types.axes import label_of
from server_capacity.results.types.ranking import TokenCosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.results.types.ranking import Latency, RankedRow, RankingResult, Recommendation

WIDTH = 79
MONEY = ("cost_hour", "cost_per_million")
TOKENS = "cost_per_million_output"
_COSTS = {"cost_hour": "per hour", "cost_month": "per month", "cost_per_million": "per 1M req", TOKENS: "1M output"}
_LONGEST_NAME, _SHORTER_NAME, _SHORTEST_NAME = 32, 24, 16
_USED = ("GPUUtilization", "CPUUtilization")


def to_text(data: RankingResult, folder: str = "") -> str:
    """The whole report: the answer first and last."""
    answer = headline(data)
    sections = (
        [answer],
        _table(data),
        _notes(data),
        _unanswered(data),
        _recommender(data),
        [answer, *([f"Folder: {folder}"] if folder else [])],
    )
    return "\n\n".join("\n".join(map(plain, lines)) for section in sections if (lines := list(section))) + "\n"


def _table(data: RankingResult) -> list[str]:
    """The rows that have a rank; where they are too wide with fewer costs, of which that of the order is last to go."""
    rows = [row for row in data.rows if row.rank is not None]
    by = data.ranked_by
    lines: list[str] = []
    for name, costs in (
        (_LONGEST_NAME, tuple(key for key in _COSTS if key != TOKENS)),
        (_LONGEST_NAME, MONEY),
        (_SHORTER_NAME, MONEY),
        *((name, (by,)) for name in (_LONGEST_NAME, _SHORTER_NAME, _SHORTEST_NAME)),
    ):
        shown = costs if by in MONEY else (TOKENS,) if by == TOKENS else ()
        lines = list(aligned([_header(data, shown), *(_row(row, data, name, shown) for row in rows)]))
        if max(map(len, lines)) <= WIDTH:
            break
    return lines if rows else []


def _header(data: RankingResult, costs: Sequence[str]) -> list[str]:
    header = ["Variant", "rank", "capacity", "95%", "p99", "used"]
    header += ["needed"] if data.target_rps is not None else []
    return header + [_COSTS[key] for key in costs]


def _row(row: RankedRow, data: RankingResult, name: int, costs: Sequence[str]) -> list[str]:
    interval = row.interval
    cells = [
        one_line(label_of(row.variant), name),
        f"{row.rank}{'=' if row.tied_with else ''}{'?' if row.warnings else ''}",
        f"{'' if interval else '≥ '}{rate_text(row.rate, interval)}",
        between(interval, "/s") if interval else "-",
        p99_text(row.latency),
        _used(row),
    ]
    cells += [f"{row.instances_for_target or 0:,}"] if data.target_rps is not None else []
    amounts = {"cost_hour": row.cost_hour, "cost_month": row.cost_month, "cost_per_million": row.cost_per_million}
    return cells + [_span(row) if key == TOKENS else money_of(row, amounts[key]) for key in costs]


def _span(row: RankedRow) -> str:
    """The cost of a million output tokens, from the upper end of the capacity's interval to the lower one."""
    worst = money_of(row, output_cost(row))
    if row.score is None or row.score.best is None or row.interval is None:
        return f"≤ {worst}"
    return f"{money_of(row, row.score.best)} to {worst}"


def p99_text(latency: Latency | None) -> str:
    """A row's p99 at the lower end; with ~ where no wave was there, and neighbouring rates tell it."""
    if latency is None or latency.p99 is None:
        return "-"
    return f"{'' if latency.p99_measured else '~'}{duration_text(latency.p99)}"


def _used(row: RankedRow) -> str:
    """The use of GPUs, else of processors, as the server reported it at the lower end."""
    fields = row.server_utilisation or {}
    found = next((fields[name] for name in _USED if name in fields), None)
    if found is None:
        return "-"
    return f"{found.at_low:.0%}" if found.unit == "share" else f"{metric_text(found.at_low)}{found.unit or ''}"


def _notes(data: RankingResult) -> Iterator[str]:
    rows = [row for row in data.rows if row.rank is not None]
    said = [_how(data)] if rows else []
    if any(row.tied_with for row in rows):
        said.append("= ties: the intervals do not decide which is better.")
    said += [
        f"? {label_of(row.variant)}: {'; '.join(row.warnings)}{_to_exit(row, data)}." for row in rows if row.warnings
    ]
    said += approximate(rows)
    said += _of_several_instances(rows)
    said += _prices(rows) if data.ranked_by in (*MONEY, TOKENS) else []
    said += data.remarks
    if data.payload_variants and data.payload_variants.text != headline(data):
        said.append(data.payload_variants.text)
    said += _token_costs(rows) if data.ranked_by == TOKENS else _tokens(rows)
    said += [each.text for each in data.quotas or [] if each.text]
    if data.spend:
        said.append(f"Planned: {spend_text(data.spend)}.")
    for sentence in said:
        yield from _folded(sentence)


def _to_exit(row: RankedRow, data: RankingResult) -> str:
    """The exit code, after what caused it, where a ranking that has an answer does not end with 0."""
    return "" if data.exit_code == OK or row.exit_code != data.exit_code else f"; so the exit code is {data.exit_code}"


def _how(data: RankingResult) -> str:
    use = f"{data.utilisation:.0%} of the interval's lower end"
    if data.target_rps is not None:
        return f"needed: number of instances, each at no more than {use}. p99 and used are at that lower end."
    costs = f"Costs are at {use}. " if data.ranked_by in MONEY else ""
    if data.ranked_by == TOKENS:
        costs = "1M output: the cost of a million output tokens, from the upper end of that interval to the lower one."
        return f"p99 and used are at the lower end of the capacity's interval. {costs}"
    return f"{costs}p99 and used are at the lower end. --target-rps R adds the number of instances."


def approximate(rows: Sequence[RankedRow]) -> list[str]:
    """The sentence on p99s that no wave measured."""
    latencies = (row.latency for row in rows if row.latency is not None)
    some = any(each.p99 is not None and not each.p99_measured for each in latencies)
    return ["~ is interpolated between neighbouring rates, not measured at the lower end."] if some else []


def _of_several_instances(rows: list[RankedRow]) -> list[str]:
    several = [f"{label_of(row.variant)}: {row.instances}" for row in rows if row.measured_on > 1]
    return (
        [f"Measured on several instances, each assumed to serve an equal share: {', '.join(several)}."]
        if several
        else []
    )


def _prices(rows: list[RankedRow]) -> list[str]:
    """Every price with whoever says it, once."""
    prices = {row.price.instance_type: row.price for row in rows if row.price is not None}.values()
    lines = [f"{each.instance_type} {each.per_hour:g} {each.currency} per hour ({each.origin})" for each in prices]
    return [f"Hourly prices of an instance: {'; '.join(lines)}. A month has 730 hours."]


def _tokens(rows: list[RankedRow]) -> list[str]:
    lines = [
        f"{label_of(row.variant)} {money_of(row, row.cost_per_million_tokens)}"
        for row in rows
        if row.cost_per_million_tokens is not None
    ]
    return [f"Per million output tokens: {', '.join(lines)}."] if lines else []


def _token_costs(rows: Sequence[RankedRow]) -> list[str]:
    """The costs of a million of each kind: none of them is a part of another."""
    lines = [f"{label_of(row.variant)}: {costs}" for row in rows if (costs := ", ".join(_each_cost(row)))]
    return [f"Per million tokens (each is the whole cost over the tokens of its kind): {'; '.join(lines)}."]


def _each_cost(row: RankedRow) -> Iterator[str]:
    costs = row.token_costs or TokenCosts()
    for kind in ("input", "cached", "output"):
        if (cost := getattr(costs, kind)) is not None:
            yield f"{kind} {money_of(row, cost)}"


def _unanswered(data: RankingResult) -> Iterator[str]:
    for row in data.rows:
        if row.rank is None:
            yield from _folded(f"✗ {label_of(row.variant)}: {one_line(_why(row), 400)}")


def _why(row: RankedRow) -> str:
    """The reason why a row has no rank, and what its tokens would cost."""
    cost = output_cost(row)
    tokens = [] if cost is None else [f"{money_of(row, cost)} per million output tokens"]
    return "; ".join([*row.warnings, row.headline, *tokens])


def _recommender(data: RankingResult) -> Iterator[str]:
    recommender = data.recommender
    if not recommender:
        return
    rows = [["Inference Recommender", "calls/min", "a second", "ModelLatency", "CostPerHour", "CostPerInference"]]
    for each in recommender.rows:
        numbers = (each.MaxInvocations, each.rate, each.ModelLatency, each.CostPerHour)
        per_call = "-" if each.CostPerInference is None else f"{each.CostPerInference:.3g}"
        rows.append([one_line(_recommended(each), _SHORTER_NAME), *map(_number, numbers), per_call])
    yield from aligned(rows)
    yield from _folded(f"Job {recommender.job} ({recommender.status}). {recommender.note}")


def _recommended(row: Recommendation) -> str:
    return ", ".join([row.instance_type or "serverless", *(f"{key}={text}" for key, text in row.env.items())])


def _number(value: float | None) -> str:
    return "-" if value is None else metric_text(value)


def _folded(sentence: str) -> list[str]:
    """A sentence within the width."""
    return wrap(
        sentence, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )
