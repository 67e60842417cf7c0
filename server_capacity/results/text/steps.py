"""The steps of a search as its tables name them: numbered without gaps, each with its purpose. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.results.types.search_waves import StretchRow

_PURPOSES = {"grow": "ramp up", "again": "repeat", "narrow": "narrow down"}
"""In the words of a table; the others stand there as they are in capacity.json."""


def step_numbers(shown: Sequence[StretchRow]) -> dict[int, int]:
    """The place in the table of each stretch by its number, which also counts the pauses between them."""
    return {row.number: place for place, row in enumerate(shown, 1)}


def step_names(shown: Sequence[StretchRow]) -> dict[int, str]:
    """``3 ramp up`` by the number of the stretch."""
    places = step_numbers(shown)
    return {row.number: f"{places[row.number]} {_PURPOSES.get(row.purpose, row.purpose)}" for row in shown}
