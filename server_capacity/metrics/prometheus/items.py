"""The quantities of a preset: what each is called in reports, what it is, and where it stands. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Item:
    """One quantity: its name in reports, what it is, and its selectors, newest first. ``optional``: many lack it."""

    name: str
    kind: Kind
    sources: tuple[str, ...]
    unit: str | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Ratio:
    """A value that follows from two counters of the preset: ``plus`` and the gain of one over that of the other."""

    name: str
    over: str
    under: str
    plus: float = 0.0
    unit: str = "Ratio"


def gauge(name: str, unit: str | None, *sources: str, optional: bool = False) -> Item:
    """A value of the moment."""
    return Item(name, "gauge", sources, unit, optional)


def counter(name: str, *sources: str, optional: bool = False) -> Item:
    """A number that only grows."""
    return Item(name, "counter", sources, None, optional)


def times(name: str, *sources: str, optional: bool = True) -> Item:
    """A histogram of seconds."""
    return Item(name, "histogram", sources, "Seconds", optional)


def sizes(name: str, *sources: str) -> Item:
    """A histogram of numbers."""
    return Item(name, "histogram", sources, "Count", optional=True)
