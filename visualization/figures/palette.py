"""The signs of runs: a colour, a dash and a marker each, the same on pages and in pictures.

Every two of the eight colours lie 12 or more apart by CIEDE2000, for normal sight and for protanopia, deuteranopia and
tritanopia (by the model of Machado, Oliveira and Fernandes, 2009), and each has a contrast of 3 or more to the card
that it is drawn on. The first eight lines are whole; where colours begin anew, dashes do not: the first 32
runs have a pair of their own.
"""

from __future__ import annotations

LIGHT = ("#0b62c4", "#d1490c", "#3e9775", "#b773a2", "#1b3c08", "#924547", "#250ab5", "#60134d")
DARK = ("#5aa9ff", "#ff8a4c", "#b5e0a6", "#a56a8f", "#388560", "#c63127", "#614ef8", "#76f2ff")
CARDS = ("#ffffff", "#161a21")
"""What they are drawn on: the light card and the dark one."""

DASHES = ((), (9.0, 3.0), (2.0, 2.5), (9.0, 3.0, 2.0, 3.0))
"""Lengths of strokes and gaps in px; a line without any is whole."""


def color_of(run: int) -> str:
    """The colour of a run on paper; colours begin anew after the last one."""
    return LIGHT[run % len(LIGHT)]


def dash_of(run: int) -> tuple[float, ...]:
    """The strokes and gaps of a run's line where lines of several runs cross."""
    return DASHES[run // len(LIGHT) % len(DASHES)]


def css_colors() -> str:
    """The colours as properties of a style sheet, ``--run-0`` and on, for light and dark."""
    pairs = enumerate(zip(LIGHT, DARK, strict=True))
    return "\n".join(f"  --run-{number}: light-dark({light}, {dark});" for number, (light, dark) in pairs)
