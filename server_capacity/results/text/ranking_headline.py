"""The answer of a ranking in one line. Pure. What is read here is the object of ``ranking.json``."""

from __future__ import annotations

from dataclasses import replace
from textwrap import shorten
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import OK
from inference_benchmarker.words.redact import without
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.wording import metric_text, money_text, pluralize
from server_capacity.results.text.headline import rate_text
from server_capacity.results.types.axes import PAYLOAD, label_of
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.result_status import broken_code, row_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.price import Price
    from server_capacity.results.types.ranking import By, RankedRow, RankingResult

_MOST_NAMED = 3
_LONGEST_LABEL = 40
_LONGEST_REASON = 160


def headline(data: RankingResult) -> str:
    """The first variant, what it takes, and by how much the next one is worse; of traffics alone, whether they differ.

    ``ml.c5.xlarge is cheapest for 1,000/s: 6 instances, $1.22/h (us-east-1, given); next ml.m5.xlarge, 31% more.``
    Then what speaks against its rows, a sentence for all the variants of which it is true.
    """
    answer = _answer(data)
    graver: dict[str, list[str]] = {}
    for row in data.rows:
        what = _what_broke(row)
        if _adds(row, data) and what not in answer:
            graver.setdefault(what, []).append(_called(row))
    return " ".join([answer, *(f"{', '.join(rows)}: {what}" for what, rows in graver.items())])


def _adds(row: RankedRow, data: RankingResult) -> bool:
    """Tells whether a row makes the exit code graver, or its answers may be none though its search ends well.

    So does one beside others that have a rank, if it is said to meet a limit at no rate. That its ranking was
    interrupted is said of all of it.
    """
    is_said = data.interrupted and row.ended == "interrupted"
    doubted = row.rank is not None and bool(row.warnings)
    none = row.outcome == "not_kept" and any(each.rank is not None for each in data.rows)
    return none or broken_code(row) != OK or ((row_code(row) != OK or doubted) and not is_said)


def left_open_beside(data: RankingResult, chosen: RankedRow) -> Iterator[str]:
    """Clauses on a ranking and its other rows, where they add to its exit code, for whoever builds on ``chosen``."""
    if data.interrupted:
        yield "its ranking was interrupted"
    for row in data.rows:
        if row is not chosen and row_code(row) != OK:
            yield f"in its ranking {_called(row)}: {_what_broke(row).rstrip('.')}"


def _called(row: RankedRow) -> str:
    return f"{label_of(row.variant)}{' has no rank' if row.rank is None else ''}"


def _what_broke(row: RankedRow) -> str:
    """All that its search leaves open, each clause to its last whole word; of one that could not begin the reason."""
    return _ended("; ".join(map(_shortened, row.warnings)) or _shortened(row.headline))


def _answer(data: RankingResult) -> str:
    rows, answered = data.rows, [row for row in data.rows if row.rank is not None]
    prefix = f"{_interrupted(rows)}; so far " if data.interrupted else ""
    if not answered:
        return f"{prefix}{'no' if prefix else 'No'} variant has a capacity{_why_not(rows)}"
    if data.payload_variants and all(name.startswith(PAYLOAD) for row in rows for name in row.variant):
        return prefix + data.payload_variants.text
    first, *rest = answered
    tied = [answered[number - 1] for number in first.tied_with]
    if tied:
        return prefix + _tie([first, *tied], data)
    following = next(iter(rest), None)
    return f"{prefix}{name_of(first)} {_is_best(first, data)}{_next(first, following, data)}."


def name_of(row: RankedRow) -> str:
    """The variant, shortened."""
    return one_line(label_of(row.variant), _LONGEST_LABEL)


def origin(price: Price | None) -> str:
    """The region and the source of a price; its date stands below the table."""
    return "" if price is None else replace(price, date=None).origin


def _interrupted(rows: list[RankedRow]) -> str:
    done, of = sum(row.outcome != "interrupted" for row in rows), pluralize(len(rows), "variant", "variants")
    return f"Interrupted after {done} of {of}" if done else f"Interrupted during the first of {of}"


def _why_not(rows: list[RankedRow]) -> str:
    """The reason of a lone variant, to the last whole word; all of it stands in its row."""
    tried = [row for row in rows if row.outcome != "interrupted"]
    if len(tried) != 1:
        return "."
    return f": {_ended(_shortened(tried[0].headline))}"


def _shortened(reason: str) -> str:
    """A reason to its last whole word."""
    return shorten(plain(without(reason)), _LONGEST_REASON, placeholder=" …")


def _ended(reason: str) -> str:
    """A reason as the end of a sentence."""
    return reason if reason.endswith("…") else f"{reason.rstrip('.')}."


def _is_best(row: RankedRow, data: RankingResult) -> str:
    by, target = data.ranked_by, data.target_rps or 0.0
    if by == "cost_hour":
        return f"is cheapest for {metric_text(target)}/s: {amount(row, data)} ({origin(row.price)})"
    if by == "cost_per_million":
        use = f"at {data.utilisation:.0%} use"
        return f"is cheapest: {amount(row, data)} {use} ({origin(row.price)})"
    if by == "cost_per_million_output":
        return f"is cheapest: {amount(row, data)} {_ends_of(row)} ({origin(row.price)})"
    if by == "instances_for_target":
        return f"serves {metric_text(target)}/s with the fewest instances: {row.instances_for_target:,}"
    return f"has the highest capacity: {amount(row, data)}"


def amount(row: RankedRow, data: RankingResult) -> str:
    """The score of a variant in words: 6 instances, $1.22/h."""
    by = data.ranked_by
    instances = pluralize(row.instances_for_target or 0, "instance", "instances")
    if by == "cost_hour":
        return f"{instances}, {money_of(row, row.cost_hour)}/h"
    if by == "cost_per_million":
        return f"{money_of(row, row.cost_per_million)} per million requests"
    if by == "cost_per_million_output":
        return f"{money_of(row, output_cost(row))} per million output tokens"
    return instances if by == "instances_for_target" else _rate(row)


def _ends_of(row: RankedRow) -> str:
    """The ends of the interval that the cost is at: the lower one, and what it would be at the upper one."""
    if row.interval is None:
        return "at the rate that it served at least"
    best = None if row.score is None else row.score.best
    upper = "" if best is None else f", {money_of(row, best)} at its upper end"
    return f"at the lower end of its capacity's interval{upper}"


def output_cost(row: RankedRow) -> float | None:
    """The cost of a million output tokens at the lower end."""
    return None if row.token_costs is None else row.token_costs.output


def money_of(row: RankedRow, amount: float | None) -> str:
    """A cost in the currency of the row's price; a dash where there is none."""
    return "-" if amount is None or row.price is None else money_text(amount, row.price.currency)


def _rate(row: RankedRow) -> str:
    """The rate of an instance."""
    interval, on = row.interval, row.measured_on
    width = None if interval is None else Interval(interval.low / on, interval.high / on)
    rate = rate_text((row.rate or 0.0) / on, width)
    return f"{'' if interval else 'at least '}{rate}{' an instance' if on > 1 else ''}"


def _next(first: RankedRow, following: RankedRow | None, data: RankingResult) -> str:
    if following is None:
        return ""
    by, name = data.ranked_by, name_of(following)
    if by == "instances_for_target":
        return f"; next {name}, {following.instances_for_target or 0:,}"
    one, other = ((_score_of(row, by) or 0.0) for row in (first, following))
    if by == "rate":
        less = 1 - other / one
        return f"; next {name}, {abs(less):.0%} {'less' if less >= 0 else 'more, but less certain'}"
    return f"; next {name}" + (f", {other / one - 1:.0%} more" if one else "")


def _score_of(row: RankedRow, by: By) -> float | None:
    """The figure that a ranking is by: a cost, or the rate of an instance."""
    if by == "rate":
        return (row.rate or 0.0) / row.measured_on
    if by == "cost_per_million_output":
        return output_cost(row)
    return row.cost_hour if by == "cost_hour" else row.cost_per_million


def _tie(rows: list[RankedRow], data: RankingResult) -> str:
    names = [name_of(row) for row in rows[:_MOST_NAMED]]
    names += [f"{len(rows) - _MOST_NAMED} more"] if len(rows) > _MOST_NAMED else []
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    target = f" for {metric_text(data.target_rps)}/s" if data.target_rps is not None else ""
    amounts = list(dict.fromkeys(amount(row, data) for row in rows[:_MOST_NAMED]))
    text = "" if data.ranked_by in ("instances_for_target", "rate") else f" ({origin(rows[0].price)})"
    return f"{listed} tie{target} within their intervals: {' or '.join(amounts)}{text}."
