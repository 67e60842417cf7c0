"""Numbers of a plan are exact decimals, however they were given. Pure."""

from __future__ import annotations

from decimal import Decimal

_MOST_DIGITS = 100


def take_exactly(value: object, *names: str) -> None:
    """Let a notebook say ``OpenLoop(7.3)``: an int or a float is taken as the decimal it prints as."""
    for name in names:
        if isinstance(number := getattr(value, name), (int, float)):
            object.__setattr__(value, name, Decimal(str(number)))


def exact(text: str) -> Decimal:
    """A number of a file. ValueError for one with very many digits: it would be computed with for ever."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits")
    return Decimal(text)
