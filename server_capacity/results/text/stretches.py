"""The stretches of a search in its text: its steps, numbered without gaps, each with its purpose. Pure."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import INDENT, aligned, duration_text, pluralize
from server_capacity.results.text.headline import number_of, unit_of
from server_capacity.results.text.model import folded_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.search_waves import StretchRow

_MAX_ROWS = 24
_OF_A_REQUEST = {"response_time": "a response time", "latency": "a latency", "ttft": "a TTFT", "tpot": "a TPOT"}
_PURPOSES = {"grow": "ramp up", "again": "repeat", "narrow": "narrow down", "beneath": "well below"}
_MEANINGS = (
    (("grow",), "rates that rise until a limit is clearly missed"),
    (("bisect",), "a rate between one that meets the limits and one that misses them"),
    (("above", "below"), "a rate just above or below the estimate at that step"),
    (("again",), "an earlier rate, sent again"),
    (("beneath",), "a much lower rate, to check that it meets the limits, too"),
    (("compare",), "a low rate, to see whether the endpoint has become faster or slower"),
    (("shared",), "a rate near the answer of an earlier tier"),
    (("shared overload",), "the overload of an earlier tier, and lower rates right after it"),
    (("overload", "return"), "more than the endpoint can serve, and lower rates right after it, without a pause"),
)
"""What the names of steps that do not explain themselves mean."""
"""In the words of a table; the others stand there as they are in capacity.json."""


def stretch_rows(found: CapacityResult, names: Sequence[str]) -> Iterator[str]:
    """A row for each stretch that is shown; ``names``: the limits whose shares stretches have, in their order."""
    shown, number = shown_stretches(found), sum(1 for row in found.stretches or [] if row.rate)
    if not shown:
        return
    judged = _judged(found, names)
    rate = "users" if found.in_ == "users" else "rate"
    header = ["Step", "start", "load", rate, "sent", "p50", "p99", "over", "in flight"]
    names_of, places = step_names(shown), step_numbers(shown)
    yield from aligned([header, *(_stretch(row, names_of[row.number], judged, unit_of(found)) for row in shown)])
    for reason, rows in groupby(shown, key=lambda row: row.void):
        if reason:
            steps = _numbers([places[row.number] for row in rows])
            yield from folded_sentence(f"✗ {steps} discarded because {reason}.")
    if shared := [places[row.number] for row in shown if row.wave in (found.waves or {}).get("shared", ())]:
        yield from folded_sentence(f"{_numbers(shared)} sent for earlier tiers.")
    if number > len(shown):
        yield f"{INDENT}… and {pluralize(number - len(shown), 'shorter step', 'shorter steps')}, in capacity.json"
    if judged is not None:
        yield from folded_sentence(f"over: the share of requests {_over(found, names[judged])}")
    per_second = "" if found.in_ == "users" else f"; rate: {'sessions' if found.in_ == 'sessions' else 'requests'}/s"
    yield from folded_sentence(f"start: since the search began; load: time spent sending{per_second}")
    yield f"{INDENT}in flight: the number when the step ended"
    for purposes, meaning in _MEANINGS:
        if explained := [each for each in purposes if any(row.purpose == each for row in shown)]:
            yield from folded_sentence(f"{', '.join(_PURPOSES.get(each, each) for each in explained)}: {meaning}")


def _over(found: CapacityResult, name: str) -> str:
    """Whatever a request did that is over this limit."""
    row = next((row for row in found.limits if row.expression == name and row.unit == "s"), None)
    if row is None or row.bound is None or row.metric not in _OF_A_REQUEST:
        return f"beyond the limit of {name}"
    return f"with {_OF_A_REQUEST[row.metric]} above {duration_text(row.bound)} (for {name})"


def _numbers(numbers: Sequence[int]) -> str:
    """The stretches in a row that do not count for one reason, as the subject of a sentence with its verb."""
    return f"Step {numbers[0]} was" if len(numbers) == 1 else f"Steps {numbers[0]} to {numbers[-1]} were"


def shown_stretches(found: CapacityResult) -> list[StretchRow]:
    """The stretches in which something was sent, in their order; of many those that were longest."""
    rows = [row for row in found.stretches or [] if row.rate]
    longest = sorted(rows, key=lambda row: row.start_s - row.end_s)[:_MAX_ROWS]
    return [row for row in rows if row in longest]


def _judged(found: CapacityResult, names: Sequence[str]) -> int | None:
    """The limit whose share each stretch shows: that which holds, or the first; a server's has none."""
    if found.limit is not None and found.limit in names:
        return list(names).index(found.limit)
    return 0 if names else None


def _stretch(row: StretchRow, name: str, judged: int | None, unit: str) -> list[str]:
    over = row.share_over[judged : judged + 1] if judged is not None else []
    times = ["-" if time is None else duration_text(time) for time in (row.p50, row.p99)]
    return [
        f"{name}{' ✗' if row.void else ''}",
        f"{row.start_s:.0f} s",
        f"{row.end_s - row.start_s:.3g} s",
        number_of(row.rate, None, unit),
        f"{row.sent:,}",
        *times,
        f"{100 * over[0]:.3g}%" if over and over[0] is not None else "-",
        f"{row.in_flight:,}",
    ]


def step_numbers(shown: Sequence[StretchRow]) -> dict[int, int]:
    """The place in the table of each stretch by its number, which also counts the pauses between them."""
    return {row.number: place for place, row in enumerate(shown, 1)}


def step_names(shown: Sequence[StretchRow]) -> dict[int, str]:
    """``3 ramp up`` by the number of the stretch."""
    places = step_numbers(shown)
    return {row.number: f"{places[row.number]} {_PURPOSES.get(row.purpose, row.purpose)}" for row in shown}
