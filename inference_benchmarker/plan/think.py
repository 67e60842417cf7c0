"""The time that a user of a closed loop thinks between an answer and the next request. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, Self

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.numbers import take_exactly, uniform
from inference_benchmarker.words.units import MAX_SECONDS, NS, SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CV = Decimal(10)
_STREAM = 0x7417 << 32  # keeps the draw of think times apart from other draws of the same seed
_NUMBER = r"\d{1,20}(?:\.\d{1,20})?"
_TIME = rf"{_NUMBER}(?:ms|s|m|h)?"
_THINK = re.compile(
    rf"(?P<constant>{_TIME})|exponential:(?P<exponential>{_TIME})|uniform:(?P<least>{_TIME})\.\.(?P<most>{_TIME})"
    rf"|lognormal:(?P<lognormal>{_TIME}):(?P<cv>{_NUMBER})"
)
_NORMAL = NormalDist()
_LEAST_SHARE = 2.0**-54  # where a share of 0 was drawn, which no normal number has


@dataclass(frozen=True)
class Think:
    """Think times with a mean of ``mean_s`` seconds: all alike, exponential, uniform or lognormal ones.

    ``half_s``: half the width of a uniform one, seconds. ``cv``: standard deviation over mean of a lognormal one.
    """

    mean_s: Decimal
    kind: Literal["constant", "exponential", "uniform", "lognormal"] = "constant"
    half_s: Decimal = Decimal(0)
    cv: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        take_exactly(self, "mean_s", "half_s", "cv")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``5s``, ``exponential:5s``, ``uniform:2s..8s`` or ``lognormal:5s:0.5``."""
        match = _THINK.fullmatch(text.strip()) if text.isascii() else None
        if match is None:
            raise BenchmarkError(
                f"--think-time {text.strip()!r} is not a think time.",
                "Write 5s, exponential:5s, uniform:2s..8s, or lognormal:5s:0.5 (mean, and deviation divided by it).",
            )
        if match["constant"]:
            return cls(_seconds(match["constant"]))
        if match["exponential"]:
            return cls(_seconds(match["exponential"]), "exponential")
        if match["lognormal"]:
            return cls(_seconds(match["lognormal"]), "lognormal", cv=Decimal(match["cv"]))
        least, most = _seconds(match["least"]), _seconds(match["most"])
        return cls((least + most) / 2, "uniform", half_s=(most - least) / 2)

    @property
    def text(self) -> str:
        """The text that ``parse`` reads."""
        mean = _text(self.mean_s)
        if self.kind == "uniform":
            return f"uniform:{_text(self.mean_s - self.half_s)}..{_text(self.mean_s + self.half_s)}"
        if self.kind == "lognormal":
            return f"lognormal:{mean}:{self.cv.normalize():f}"
        return mean if self.kind == "constant" else f"exponential:{mean}"

    @property
    def mean_ns(self) -> int:
        """The mean in nanoseconds."""
        return int(self.mean_s * NS)

    def ns(self, seed: int, index: int) -> int:
        """The time thought after the answer of this arrival, nanoseconds: the same in whichever worker sends it."""
        if self.kind == "constant":
            return self.mean_ns
        return int(self._seconds(uniform(seed ^ _STREAM, index)) * NS)

    def rest_ns(self, share: float, seed: int, index: int) -> int:
        """The time, nanoseconds, that is left to think to someone who has been at it for long, as users begin.

        This ``share`` of them have less left: evenly spread shares let users begin as they go on. The density of what
        is left is the share of times that are longer, over their mean (the equilibrium distribution of a renewal
        process: Cox, Renewal Theory, 1962).
        """
        if self.kind == "exponential":
            return int(self._seconds(share) * NS)
        if self.kind == "uniform":
            return int(self._rest_of_uniform(share) * NS)
        if self.kind == "lognormal":
            mu, sigma = self._of_logarithm
            drawn = max(uniform(seed ^ _STREAM, index), _LEAST_SHARE)
            return int(share * math.exp(mu + sigma * (sigma + _NORMAL.inv_cdf(drawn))) * NS)
        return int(share * self.mean_ns)

    def _rest_of_uniform(self, share: float) -> float:
        mean, width = float(self.mean_s), 2 * float(self.half_s)
        least, over = mean - width / 2, share * mean
        if over <= least:
            return over
        return least + width - math.sqrt(max(0.0, width * width - 2 * width * (over - least)))

    def _seconds(self, share: float) -> float:
        """The time that this share of all are below, by inversion."""
        mean = float(self.mean_s)
        if self.kind == "exponential":
            return -mean * math.log1p(-share)
        if self.kind == "uniform":
            return mean + (2 * share - 1) * float(self.half_s)
        mu, sigma = self._of_logarithm
        return math.exp(mu + sigma * _NORMAL.inv_cdf(max(share, _LEAST_SHARE)))

    @cached_property
    def _of_logarithm(self) -> tuple[float, float]:
        """Mean and standard deviation of the logarithm of a lognormal one."""
        variance = math.log1p(float(self.cv) ** 2)
        return math.log(float(self.mean_s)) - variance / 2, math.sqrt(variance)

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it."""
        most = self.mean_s + self.half_s
        if not most.is_finite() or not 0 <= self.mean_s <= most <= MAX_SECONDS:
            yield f"a user thinks from 0 to {MAX_SECONDS:,} seconds, from the least to the most, not {self.text}."
        elif self.half_s > self.mean_s:
            yield f"a think time is at least 0 seconds, not {self.text}."
        elif self.kind == "lognormal" and not (self.mean_s and 0 < self.cv <= MOST_CV):
            yield f"a lognormal one needs a mean and a deviation above 0, which is at most {MOST_CV} times the mean."


def _text(seconds: Decimal) -> str:
    return f"{seconds.normalize():f}s"


def _seconds(text: str) -> Decimal:
    unit = next((unit for unit in ("ms", "s", "m", "h") if text.endswith(unit)), "")
    return Decimal(text.removesuffix(unit)) * SECONDS[unit or "s"]
