"""The lengths over which a surface goes: its grid, those that the fit is of, and those that are held out. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple


class Lengths(NamedTuple):
    """Tokens of a prompt and of an answer, as they are asked for."""

    prompt: int
    answer: int

    @property
    def text(self) -> str:
        """``500x100``: a folder's name."""
        return f"{self.prompt}x{self.answer}"

    @property
    def words(self) -> str:
        """For a sentence."""
        return f"{self.prompt:,} input and {self.answer:,} output tokens"


@dataclass(frozen=True, slots=True)
class Range:
    """From ``low`` to ``high`` in so many levels, each the same multiple of the one before."""

    low: int
    high: int
    levels: int

    def at(self, share: float) -> int:
        """The length so far on the way: 0 is the lowest, 1 the highest."""
        return round(float(self.low * (self.high / self.low) ** share))

    @property
    def all(self) -> list[int]:
        """Every level."""
        return [self.at(place / (self.levels - 1)) for place in range(self.levels)]


@dataclass(frozen=True, slots=True)
class Over:
    """The ranges of prompts and answers. Prompts of three lengths tell what is quadratic in them."""

    prompts: Range
    answers: Range

    @property
    def fitted(self) -> list[Lengths]:
        """Those that the fit is of: the most answers at a time, the longest contexts, and prompts between."""
        low, high = self.answers.low, self.answers.high
        return [Lengths(self.prompts.low, high), Lengths(self.prompts.at(0.5), low), Lengths(self.prompts.high, high)]

    @property
    def held_out(self) -> list[Lengths]:
        """Those that no fit sees: the middle, the most prompts, and the most requests."""
        low = self.answers.low
        middle = Lengths(self.prompts.at(0.5), self.answers.at(0.5))
        return [middle, Lengths(self.prompts.high, low), Lengths(self.prompts.low, low)]

    @property
    def grid(self) -> list[Lengths]:
        """All that the surface has."""
        return [Lengths(prompt, answer) for prompt in self.prompts.all for answer in self.answers.all]

    @property
    def base(self) -> Lengths:
        """The lengths that are doubled: in the middle, as far as twice as much is within the ranges."""
        return Lengths(*(math.floor(min(each.at(0.5), each.high / 2)) for each in (self.prompts, self.answers)))
