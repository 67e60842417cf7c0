"""Numbers of a plan: exact decimals, however they were given, and draws that follow from the seed. Pure."""

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


_MASK = (1 << 64) - 1


def uniform(seed: int, index: int) -> float:
    """A number in [0, 1) that depends on the seed and the arrival alone, so any worker draws it alike.

    The mixing function is SplitMix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number
    generators, OOPSLA 2014).
    """
    z = (seed * 0x9E3779B97F4A7C15 + (index + 1) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((z ^ (z >> 31)) >> 11) / (1 << 53)
