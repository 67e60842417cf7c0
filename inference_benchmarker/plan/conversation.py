"""The conversations of an address without a file: how many turns, and which prefix sessions share. Pure."""

from __future__ import annotations

import math
import re
import secrets
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, Self

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.record import MOST_TURN
from inference_benchmarker.url import SALT_SETTING
from inference_benchmarker.words.redact import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

AS_IS, FRESH, WARM = "as-is", "fresh", "warm"
"""The server's cache may have what earlier runs sent, or each run begins its prompts with a word of its own, or what
conversations share is sent once before the wave."""
MOST_GROUPS, MOST_PREFIX = 100_000, 10_000_000
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_TURNS = re.compile(
    rf"(?P<constant>\d{{1,9}})|uniform:(?P<least>\d{{1,9}})\.\.(?P<most>\d{{1,9}})|geometric:(?P<mean>{_NUMBER})"
)
_PREFIX = re.compile(rf"(?P<tokens>\d{{1,9}})(?::groups=(?P<groups>\d{{1,9}}))?(?::zipf=(?P<zipf>{_NUMBER}))?")


@dataclass(frozen=True, slots=True)
class TurnCount:
    """The number of a session's turns: from ``least`` to ``most``, all alike; geometric ones have this ``mean``."""

    text: str
    kind: Literal["uniform", "geometric"]
    least: int = 1
    most: int = MOST_TURN
    mean: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``5``, ``uniform:3..8`` or ``geometric:4``."""
        match = _TURNS.fullmatch(text.strip()) if text.isascii() else None
        if match is not None:
            found = cls._of(match)
            if 1 <= found.least <= found.most <= MOST_TURN and 1 <= found.mean <= MOST_TURN:
                return found
        raise BenchmarkError(
            f"--turns {quoted(text.strip())} is not a number of turns.",
            f"Write 5, uniform:3..8, or geometric:4 (its mean); a session has from 1 to {MOST_TURN:,} turns.",
        )

    @classmethod
    def _of(cls, match: re.Match[str]) -> Self:
        if match["mean"]:
            return cls(match[0], "geometric", mean=float(match["mean"]))
        least, most = (int(match[name] or match["constant"]) for name in ("least", "most"))
        return cls(match[0], "uniform", least, most)

    @property
    def average(self) -> float:
        """The mean over all sessions."""
        return self.mean if self.kind == "geometric" else (self.least + self.most) / 2

    def draw(self, share: float) -> int:
        """The number that this share (from 0 to below 1) of all sessions are below, by inversion."""
        if self.kind == "uniform":
            return self.least + int(share * (self.most - self.least + 1))
        if self.mean <= 1:
            return 1
        return min(1 + int(math.log1p(-share) / math.log1p(-1 / self.mean)), self.most)


@dataclass(frozen=True)
class SharedPrefix:
    """A prefix of so many ``tokens`` for each of ``groups`` of sessions.

    The n-th group has n**-zipf times as many as the first; with 0 all have as many.
    """

    text: str
    tokens: int
    groups: int = 1
    zipf: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``4000``, ``4000:groups=20`` or ``4000:groups=20:zipf=1.1``."""
        match = _PREFIX.fullmatch(text.strip()) if text.isascii() else None
        if match is not None:
            found = cls(match[0], int(match["tokens"]), int(match["groups"] or 1), float(match["zipf"] or 0))
            if 1 <= found.tokens <= MOST_PREFIX and 1 <= found.groups <= MOST_GROUPS and found.zipf <= 10:
                return found
        raise BenchmarkError(
            f"--shared-prefix {quoted(text.strip())} is not a prefix.",
            f"Write its tokens, 4000, or 4000:groups=20:zipf=1.1; from 1 to {MOST_PREFIX:,} tokens, "
            f"{MOST_GROUPS:,} groups and zipf=10 at most.",
        )

    def group(self, share: float) -> int:
        """The group, from 0 on, that this share (from 0 to below 1) of all sessions fall into."""
        return bisect_right(self._sums, share * self._sums[-1], hi=self.groups - 1)

    @cached_property
    def _sums(self) -> tuple[float, ...]:
        return tuple(accumulate((place + 1) ** -self.zipf for place in range(self.groups)))


def new_salt() -> str:
    """A word that no run before had."""
    return secrets.token_hex(8)


CACHE_SETTINGS: dict[str, tuple[str, Callable[[], str]]] = {
    FRESH: (SALT_SETTING, new_salt),
    WARM: ("WARM", lambda: "true"),
}
"""The constant of a factories file that each kind of ``--cache`` sets, and its value."""
