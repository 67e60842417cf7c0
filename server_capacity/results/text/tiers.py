"""The capacities of several tiers in words: a line and a row of each, and the load that they shared. Pure.

What is read here is the object of ``tiers.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INTERRUPTED, OK
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.wording import aligned, length_text
from server_capacity.results.text.headline import UNITS, between, rate_text
from server_capacity.results.text.model import folded_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.tiers import TierRow, TiersResult

_LONGEST_NAME = 24
_AFTER_OVERLOAD = "after overload"
_CONFIRMED = {"holds": "yes", "fails": "no", "cannot_tell": "inconclusive", None: "no"}


def headline(found: TiersResult) -> str:
    """The tiers without a confirmed answer, those whose search did not end well, and the capacity of each other one."""
    sure = [row for row in found.rows if row.exit_code == OK]
    capacities = ", ".join(f"{row.tier} {_capacity(row, UNITS[found.in_])}" for row in sure)
    if len(sure) == len(found.rows):
        return f"Every tier has a confirmed capacity: {capacities}"
    others = [row for row in found.rows if row not in sure]
    without = ", ".join(row.tier for row in others if row.confirmed != "holds")
    graver = (f"{row.tier}: exit code {row.exit_code}" for row in others if row.confirmed == "holds")
    parts = (f"no confirmed capacity of {without}" if without else "", *graver, capacities)
    text = "; ".join(filter(None, ("Interrupted" if found.exit_code == INTERRUPTED else "", *parts)))
    return f"{text[0].upper()}{text[1:]}" if without else text


def _capacity(row: TierRow, unit: str) -> str:
    rate = rate_text(row.rate, row.interval, unit)
    if row.interval is None:
        return f"at least {rate}"
    ends = between(row.interval, unit)
    return f"{rate} {_AFTER_OVERLOAD} ({ends})" if row.after_overload else f"{rate} (95% interval: {ends})"


def to_text(found: TiersResult, folder: str = "") -> str:
    """The report: the answer first and last."""
    answer = headline(found)
    sections = (
        [answer],
        [f"{row.tier}: {row.headline}" for row in found.rows],
        _table(found),
        _notes(found),
        [answer, *([f"Folder: {folder}"] if folder else [])],
    )
    return "\n\n".join("\n".join(map(plain, lines)) for section in sections if (lines := list(section))) + "\n"


def _table(found: TiersResult) -> Iterator[str]:
    rows = [_row(row, UNITS[found.in_]) for row in found.rows]
    yield from aligned([["Tier", "capacity", "95% interval", "first violated", "confirmed"], *rows])


def _row(row: TierRow, unit: str) -> list[str]:
    interval = row.interval
    rate = "-" if row.rate is None else f"{'' if interval else '≥ '}{rate_text(row.rate, interval, unit)}"
    return [
        one_line(row.tier, _LONGEST_NAME),
        rate,
        f"{between(interval, unit)}{f', {_AFTER_OVERLOAD}' if row.after_overload else ''}" if interval else "-",
        one_line(row.limit or "-", _LONGEST_NAME),
        _CONFIRMED[row.confirmed],
    ]


def _notes(found: TiersResult) -> Iterator[str]:
    for row in found.rows:
        if row.warnings:
            so = f"; so the exit code is {row.exit_code}" if row.exit_code == found.exit_code != OK else ""
            yield from folded_sentence(f"? {row.tier}: {'; '.join(row.warnings)}{so}.")
    yield from folded_sentence(" ".join(_loads(found)))


def _loads(found: TiersResult) -> Iterator[str]:
    """The load that was sent for each tier, and what of the earlier tiers' joined its evidence."""
    for row in found.rows:
        if row.load_s is None:
            continue
        own = length_text(row.load_s - (row.shared_s or 0.0))
        judged = (row.shared_s or 0.0) - (row.shared_void_s or 0.0)
        beside = f", and {length_text(judged)} sent for earlier tiers, judged by its limits" if judged > 0 else ""
        yield f"{row.tier}: {own} of load{beside}."
