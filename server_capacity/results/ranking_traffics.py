"""Several traffics are equivalent to an endpoint, or not, by what it holds of each. Pure.

Intervals (95%) that do not overlap: they differ. All of them within 10% of each other, from the least end to the most:
they are equivalent. Anything else cannot be told.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from server_capacity.results.types.axes import PAYLOAD, label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.results.ranking_row import Row

WITHIN = 0.10
"""Rates that differ by no more than this share are as good as the same."""


def traffics(rows: Sequence[Row]) -> dict[str, Any] | None:
    """``equivalent``: True, False, or None where it cannot be told; a sentence that says why. None without several."""
    told = [_of_one_endpoint(group) for group in _by_endpoint(rows) if len(group) > 1]
    if not told:
        return None
    answers = [equivalent for equivalent, _ in told]
    whole = False if False in answers else None if None in answers else True
    return {"equivalent": whole, "text": " ".join(text for _, text in told), "within": WITHIN}


def _by_endpoint(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows whose endpoints are the same, and whose traffics differ."""
    varied = [row for row in rows if any(name.startswith(PAYLOAD) for name in row["variant"])]

    def endpoint(row: Row) -> list[tuple[str, str]]:
        return sorted((name, text) for name, text in row["variant"].items() if not name.startswith(PAYLOAD))

    return [list(group) for _, group in groupby(sorted(varied, key=endpoint), key=endpoint)]


def _of_one_endpoint(rows: Sequence[Row]) -> tuple[bool | None, str]:
    known = [row for row in rows if row["interval"]]
    on = label_of({name: text for name, text in rows[0]["variant"].items() if not name.startswith(PAYLOAD)})
    low, high = (min, max) if known else (None, None)
    if len(known) < len(rows) or low is None or high is None:
        missing = ", ".join(_traffic(row) for row in rows if not row["interval"])
        return None, f"To {on} nobody can tell whether the traffics are equivalent: no interval of {missing}."
    least = min(known, key=lambda row: row["interval"]["high"])
    most = max(known, key=lambda row: row["interval"]["low"])
    apart = most["interval"]["low"] - least["interval"]["high"]
    if apart > 0:
        ratio = most["rate"] / least["rate"] - 1
        return (
            False,
            f"To {on} the traffics differ: it holds {ratio:.0%} more of {_traffic(most)} than of {_traffic(least)}.",
        )
    spread = max(row["interval"]["high"] for row in known) / min(row["interval"]["low"] for row in known) - 1
    names = " and ".join(_traffic(row) for row in known) if len(known) == 2 else "all traffics"
    if spread <= WITHIN:
        return True, f"To {on} {names} are equivalent: what it holds of each differs by at most {spread:.0%}."
    return None, (
        f"To {on} nobody can tell whether {names} are equivalent: the intervals overlap, and up to {spread:.0%} would "
        "not show. More --time tells."
    )


def _traffic(row: Row) -> str:
    return label_of({name: text for name, text in row["variant"].items() if name.startswith(PAYLOAD)})
