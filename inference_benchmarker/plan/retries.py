"""Clients that try again: how long one attempt may take, how many follow it, and how long they wait before. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Self

from inference_benchmarker.errors import BenchmarkError, Problem
from inference_benchmarker.plan.load import seconds_problems
from inference_benchmarker.plan.numbers import exact, take_exactly, uniform
from inference_benchmarker.plan.stage import LEAST_SECONDS
from inference_benchmarker.words.units import MAX_SECONDS, NS, SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_RETRIES = 100
BASE_S, MAX_S = Decimal(1), Decimal(20)
"""Of an exponential backoff: those of the AWS SDKs' standard retry mode for requests that were throttled."""
_STREAM = 0xB0FF  # keeps the draw of waits apart from other draws of the same seed
_TIME = r"\d{1,20}(?:\.\d{1,40})?(?:ms|s|m)?"
_BACKOFF = re.compile(
    rf"(?P<none>none)|fixed:(?P<fixed>{_TIME})|exponential(?::(?P<base>{_TIME})(?:\.\.(?P<most>{_TIME}))?)?"
)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait before a retry: none, a fixed ``base_s`` seconds, or one that grows with each retry.

    An exponential one is drawn uniformly from 0 to ``base_s * 2^(n - 1)`` before the n-th retry, at most to ``max_s``
    ("full jitter": Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015).
    """

    kind: Literal["none", "fixed", "exponential"] = "none"
    base_s: Decimal = BASE_S
    max_s: Decimal = MAX_S

    def __post_init__(self) -> None:
        take_exactly(self, "base_s", "max_s")

    @property
    def text(self) -> str:
        """The text that ``parse`` reads."""
        if self.kind == "exponential":
            return f"exponential:{_text(self.base_s)}..{_text(self.max_s)}"
        return f"fixed:{_text(self.base_s)}" if self.kind == "fixed" else "none"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``none``, ``fixed:500ms``, ``exponential``, ``exponential:0.5s`` or ``exponential:0.5s..8s``."""
        match = _BACKOFF.fullmatch(text.strip()) if text.isascii() else None
        if match is None:
            raise BenchmarkError(
                f"--backoff {text!r} is not a wait between attempts.",
                "Write none, fixed:500ms, exponential (from 1s to at most 20s), or exponential:0.5s..8s.",
            )
        if match["none"]:
            return cls()
        if match["fixed"]:
            return cls("fixed", _seconds(match["fixed"]))
        base = _seconds(match["base"]) if match["base"] else BASE_S
        return cls("exponential", base, _seconds(match["most"]) if match["most"] else max(base, MAX_S))

    def wait_ns(self, seed: int, index: int, attempt: int) -> int:
        """The wait of an arrival before this attempt of it, from 1 on: the same in whichever worker sends it."""
        if self.kind == "none":
            return 0
        if self.kind == "fixed":
            return int(self.base_s * NS)
        most = min(self.max_s, self.base_s * 2 ** (attempt - 1))
        return int(uniform(seed ^ (attempt << 16 | _STREAM), index) * float(most) * NS)

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it."""
        for seconds in (self.base_s, self.max_s):
            if not seconds.is_finite() or not LEAST_SECONDS <= seconds <= MAX_SECONDS:
                yield f"a wait must be from {LEAST_SECONDS} to {MAX_SECONDS:,} seconds, not {seconds}."
                return
        if self.kind == "exponential" and self.base_s > self.max_s:
            yield f"the first wait, {self.base_s} s, must not be above the longest, {self.max_s} s."


@dataclass(frozen=True, slots=True)
class Retries:
    """A client's patience with a request that is slow or fails: ``retries`` further attempts, each of ``timeout_s``.

    None: the time of an attempt is not limited.
    """

    timeout_s: Decimal | None = None
    retries: int = 0
    backoff: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        take_exactly(self, "timeout_s")
        if isinstance(self.backoff, str):
            object.__setattr__(self, "backoff", Backoff.parse(self.backoff))

    @property
    def asked(self) -> bool:
        """Tells whether clients give up or retry at all."""
        return self.timeout_s is not None or self.retries > 0

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with them."""
        if not 0 <= self.retries <= MOST_RETRIES:
            text = f"--client-retries must be from 0 to {MOST_RETRIES}, not {self.retries}."
            yield Problem(("retries",), text)
        if self.timeout_s is not None:
            yield from seconds_problems("timeout_s", "--client-timeout", self.timeout_s, LEAST_SECONDS)
        yield from (Problem(("backoff",), f"--backoff: {text}") for text in self.backoff.problems())
        if self.backoff.kind != "none" and not self.retries:
            text = "--backoff is the wait before another attempt: give --client-retries N, too."
            yield Problem(("backoff", "retries"), text)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; nothing is rounded."""
        timeout = None if self.timeout_s is None else f"{self.timeout_s:f}"
        return {"timeout_s": timeout, "retries": self.retries, "backoff": self.backoff.text}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Those that ``to_json`` described."""
        timeout = data["timeout_s"]
        backoff = Backoff.parse(data["backoff"])
        return cls(None if timeout is None else exact(timeout), data["retries"], backoff)


def _text(seconds: Decimal) -> str:
    return f"{seconds.normalize():f}s"


def _seconds(text: str) -> Decimal:
    unit = next((unit for unit in ("ms", "s", "m") if text.endswith(unit)), "")
    return Decimal(text.removesuffix(unit)) * SECONDS[unit or "s"]
