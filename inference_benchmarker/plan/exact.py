"""Numbers of a plan are exact decimals, however they were given. Pure."""

from __future__ import annotations

from decimal import Decimal


def take_exactly(value: object, *names: str) -> None:
    """Let a notebook say ``OpenLoop(7.3)``: an int or a float is taken as the decimal it prints as."""
    for name in names:
        if isinstance(number := getattr(value, name), (int, float)):
            object.__setattr__(value, name, Decimal(str(number)))
