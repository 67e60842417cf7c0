"""The answer of a ranking in one line. Pure. What is read here is the object of ``ranking.json``."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

from inference_benchmarker.exit_codes import OK
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.wording import metric_text, money_text, pluralize
from server_capacity.results.text.headline import rate_text
from server_capacity.results.types.axes import PAYLOAD, label_of
from server_capacity.results.types.price import Price
from server_capacity.results.types.standing import broken_code

Ranking = Mapping[str, Any]
Row = Mapping[str, Any]

_MOST_NAMED = 3
_LONGEST_LABEL = 40
_LONGEST_REASON = 160


def headline(data: Ranking) -> str:
    """The first variant, what it takes, and by how much the next one is worse; of traffics alone, whether they differ.

    ``ml.c5.xlarge is cheapest for 1,000/s: 6 instances, $1.22/h (us-east-1, given); next ml.m5.xlarge, 31% more.``
    """
    answer = _answer(data)
    broken = ((row, _what_broke(row)) for row in data["rows"] if broken_code(row) != OK)
    return " ".join([answer, *(_sentence(row, what) for row, what in broken if what not in answer)])


def _sentence(row: Row, what: str) -> str:
    return f"{label_of(row['variant'])}{' has no rank' if row['rank'] is None else ''}: {what}"


def _what_broke(row: Row) -> str:
    """All that its search leaves open; of one that could not begin the reason."""
    return _ended("; ".join(row.get("warnings") or ()) or str(row["headline"]))


def _answer(data: Ranking) -> str:
    rows, answered = data["rows"], [row for row in data["rows"] if row["rank"] is not None]
    prefix = f"{_interrupted(rows)}; so far " if data["interrupted"] else ""
    if not answered:
        return f"{prefix}{'no' if prefix else 'No'} variant has a capacity{_why_not(rows)}"
    if data["payload_variants"] and all(name.startswith(PAYLOAD) for row in rows for name in row["variant"]):
        return prefix + str(data["payload_variants"]["text"])
    first, *rest = answered
    tied = [answered[number - 1] for number in first["tied_with"]]
    if tied:
        return prefix + _tie([first, *tied], data)
    following = next(iter(rest), None)
    return f"{prefix}{name_of(first)} {_is_best(first, data)}{_next(first, following, data)}."


def name_of(row: Row) -> str:
    """The variant, shortened."""
    return one_line(label_of(row["variant"]), _LONGEST_LABEL)


def origin(price: Mapping[str, Any]) -> str:
    """The region and the source of a price; its date stands below the table."""
    return Price(**{**price, "date": None}).origin


def _interrupted(rows: list[Row]) -> str:
    done, of = sum(row["outcome"] != "interrupted" for row in rows), pluralize(len(rows), "variant", "variants")
    return f"Interrupted after {done} of {of}" if done else f"Interrupted during the first of {of}"


def _why_not(rows: list[Row]) -> str:
    """The reason of a lone variant, to the last whole word; all of it stands in its row."""
    told = [row for row in rows if row["outcome"] != "interrupted"]
    if len(told) != 1:
        return "."
    return f": {_ended(told[0]['headline'])}"


def _ended(reason: str) -> str:
    """A reason to its last whole word, as the end of a sentence."""
    told = shorten(plain(reason), _LONGEST_REASON, placeholder=" …")
    return told if told.endswith("…") else f"{told.rstrip('.')}."


def _is_best(row: Row, data: Ranking) -> str:
    by, target = data["ranked_by"], data["target_rps"]
    if by == "cost_hour":
        return f"is cheapest for {metric_text(target)}/s: {amount(row, data)} ({origin(row['price'])})"
    if by == "cost_per_million":
        use = f"at {data['utilisation']:.0%} use"
        return f"is cheapest: {amount(row, data)} {use} ({origin(row['price'])})"
    if by == "instances_for_target":
        return f"serves {metric_text(target)}/s with the fewest instances: {row['instances_for_target']:,}"
    return f"holds most: {amount(row, data)}"


def amount(row: Row, data: Ranking) -> str:
    """The score of a variant in words: 6 instances, $1.22/h."""
    by, price = data["ranked_by"], row["price"]
    instances = pluralize(row["instances_for_target"] or 0, "instance", "instances")
    if by == "cost_hour":
        return f"{instances}, {money_text(row['cost_hour'], price['currency'])}/h"
    if by == "cost_per_million":
        return f"{money_text(row['cost_per_million'], price['currency'])} per million requests"
    return instances if by == "instances_for_target" else _rate(row)


def _rate(row: Row) -> str:
    """The rate of an instance."""
    rate, interval = row["rate"] / row["instances"], row["interval"]
    width = None if interval is None else {end: interval[end] / row["instances"] for end in interval}
    return f"{'' if interval else 'at least '}{rate_text(rate, width)}{' an instance' if row['instances'] > 1 else ''}"


def _next(first: Row, following: Row | None, data: Ranking) -> str:
    if following is None:
        return ""
    by, name = data["ranked_by"], name_of(following)
    if by == "instances_for_target":
        return f"; next {name}, {following[by]:,}"
    if by == "rate":
        less = 1 - (following["rate"] / following["instances"]) / (first["rate"] / first["instances"])
        return f"; next {name}, {abs(less):.0%} {'less' if less >= 0 else 'more, less surely'}"
    more = following[by] / first[by] - 1 if first[by] else None
    return f"; next {name}" + ("" if more is None else f", {more:.0%} more")


def _tie(rows: list[Row], data: Ranking) -> str:
    names = [name_of(row) for row in rows[:_MOST_NAMED]]
    names += [f"{len(rows) - _MOST_NAMED} more"] if len(rows) > _MOST_NAMED else []
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    target = f" for {metric_text(data['target_rps'])}/s" if data["target_rps"] is not None else ""
    amounts = list(dict.fromkeys(amount(row, data) for row in rows[:_MOST_NAMED]))
    told = f" ({origin(rows[0]['price'])})" if data["ranked_by"] in ("cost_hour", "cost_per_million") else ""
    return f"{listed} tie{target}, by their intervals: {' or '.join(amounts)}{told}."
