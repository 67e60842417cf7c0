"""A stage of the schedule, as users write it: ``50:30s``, ``50..400:2m``, ``spike=2000:10s``. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Self

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.numbers import take_exactly
from inference_benchmarker.words.units import MAX_SECONDS, NS, SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_RATE = 1_000_000
LEAST_RATE = Decimal("0.000001")
LEAST_SECONDS = Decimal("0.001")

_STAGE_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
_NUMBER = r"\d{1,20}(?:\.\d{1,20})?"
_STAGE = re.compile(
    rf"(?:(?P<name>[^=:,]+?)\s*=\s*)?(?P<first>{_NUMBER})(?:\s*\.\.\s*(?P<last>{_NUMBER}))?"
    rf"\s*:\s*(?P<length>{_NUMBER})\s*(?P<unit>ms|s|m|h)?"
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the schedule: ``duration_s`` seconds at a constant rate, or at one that changes linearly.

    A rate of zero is a pause. Without a name, the stage is named after its position, from 1.
    """

    from_rps: Decimal
    to_rps: Decimal
    duration_s: Decimal
    name: str = ""

    def __post_init__(self) -> None:
        take_exactly(self, "from_rps", "to_rps", "duration_s")

    @property
    def duration_ns(self) -> int:
        """Its length in nanoseconds."""
        return int(self.duration_s * NS)

    @property
    def arrivals(self) -> Decimal:
        """The area under its rate: the mean number of arrivals."""
        return (self.from_rps + self.to_rps) / 2 * self.duration_s

    @property
    def text(self) -> str:
        """The text that ``parse`` reads: ``spike=50..400:30s``."""
        name = f"{self.name}=" if self.name else ""
        rates = f"{self.from_rps:f}" if self.from_rps == self.to_rps else f"{self.from_rps:f}..{self.to_rps:f}"
        return f"{name}{rates}:{self.duration_s:f}s"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``50:30s``, ``50..400:2m`` or ``spike=2000:10s``."""
        match = _STAGE.fullmatch(text.strip()) if text.isascii() else None
        if match is None:
            raise BenchmarkError(
                f"--stages: {text.strip()!r} is not a stage.",
                "Write RATE:DURATION or FROM..TO:DURATION, with a name if you like: 50:30s, 50..400:2m, spike=2000:9s.",
            )
        first = Decimal(match["first"])
        last = first if match["last"] is None else Decimal(match["last"])
        return cls(first, last, Decimal(match["length"]) * SECONDS[match["unit"] or "s"], match["name"] or "")

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it."""
        for rate in dict.fromkeys((self.from_rps, self.to_rps)):
            if not rate.is_finite() or not (rate == 0 or LEAST_RATE <= rate <= MAX_RATE):
                yield f"a rate must be 0 or from {LEAST_RATE} to {MAX_RATE:,} requests/s, not {rate:f}."
        if not self.duration_s.is_finite() or not LEAST_SECONDS <= self.duration_s <= MAX_SECONDS:
            yield f"it must last from {LEAST_SECONDS} to {MAX_SECONDS:,} seconds, not {self.duration_s}."
        if self.name and (not _STAGE_NAME.fullmatch(self.name) or self.name.isdecimal()):
            yield "a name has letters, digits, - and _, and is not a number."
