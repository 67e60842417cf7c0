"""The length of a proof: long enough that it tells a right plan from one that is an instance short. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import length_text
from server_capacity.experiments.proof.evidence import HELD, LONGEST_S, REJECTED, Bursts
from server_capacity.results.types.proof import ProofLength

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.search.limits import Limit

UNKNOWN_SLOPE = 10.0
UNKNOWN_DISPERSION = 250.0
"""Of a limit that the search did not measure: bursts as dense as those of endpoints that were simulated."""
UNKNOWN_OF_SUCCESS = 20.0
"""The same of refusals, which come in far shorter bursts than slow answers."""
TOO_SHORT = "is too short to decide"
"""In the clause on a time in which nothing can hold."""
LEAST_ALLOWED = 1e-4
"""The share over a limit that a limit without any is held by."""


@dataclass(frozen=True, slots=True)
class Length:
    """``seconds`` of load after ``warmup_s``. ``needed_s``: those that it takes to tell, at most ``LONGEST_S``.

    ``rejects`` and ``holds``: the chances that it rejects a plan that is one instance short, and holds a right one.
    ``measured``: they are by the bursts that the search saw, and not by usual ones.
    """

    seconds: float
    warmup_s: float
    needed_s: float
    rejects: float
    holds: float
    measured: bool

    @property
    def too_short(self) -> str:
        """A clause on a time in which nothing can hold, whatever comes; empty for any other."""
        return "" if self.holds else f"{length_text(self.seconds)} {TOO_SHORT}: {self._instead()}"

    def to_result(self) -> ProofLength:
        """Its part of the proof."""
        return ProofLength(self.seconds, self.warmup_s, self.needed_s, self.rejects, self.holds, self.measured)

    def sentence(self) -> str:
        """The time, and what it can tell, before it begins."""
        text = (
            f"The verification sends load for {length_text(self.seconds)}, after {length_text(self.warmup_s)} of "
            f"warm-up. This rejects a plan that is one instance short in {self.rejects:.0%} of cases, and accepts a "
            f"sufficient one in {self.holds:.0%}"
        )
        text += "." if self.measured else ", assuming dense bursts, because the search did not measure them."
        if self.too_short:
            return f"{text} {self.too_short}."
        if self.rejects >= REJECTED and self.holds < HELD and self.seconds >= self.needed_s:
            text += " A sufficient plan may be too close to its limit to decide."
        elif min(self.rejects / REJECTED, self.holds / HELD) < 1 and (self.seconds < self.needed_s or self._is_longest):
            text += f" A sufficient plan may look as if it were one instance short: {self._instead()}."
        return text

    def _instead(self) -> str:
        if not self._is_longest:
            return f"give --time {math.ceil(self.needed_s)}"
        return f"more than {length_text(LONGEST_S)} would be needed: set it with --time"

    @property
    def _is_longest(self) -> bool:
        return self.needed_s >= LONGEST_S


def length_of(planned: Planned, limits: Sequence[Limit], time_s: float | None, least_s: float = 0.0) -> Length:
    """The length of a proof: ``time_s`` where it is given, else what it takes, and at least ``least_s``."""
    main = main_of(limits, planned)
    bursts = bursts_of(main, planned)
    needed = planned.aim.length_s(bursts)
    seconds = time_s or max(needed, least_s)
    warmup = min(planned.aim.warmup_s(bursts), seconds)
    chances = planned.aim.chances(bursts, seconds)
    return Length(seconds, warmup, needed, *chances, measured=_is_measured(main, planned))


def main_of(limits: Sequence[Limit], planned: Planned) -> Limit:
    """The limit that tells an instance too few: which was violated first in the search, or the first one."""
    return next((limit for limit in limits if limit.expression == planned.limit), limits[0])


def bursts_of(limit: Limit, planned: Planned) -> Bursts:
    """The bursts of a limit: as the search measured them, or as dense as any where it did not."""
    allowed, measured = max(limit.allowed, LEAST_ALLOWED), planned.correlation
    if measured is None or not _is_measured(limit, planned):
        dispersion = UNKNOWN_OF_SUCCESS if limit.metric == "success" else UNKNOWN_DISPERSION
        return Bursts(allowed, dispersion, UNKNOWN_SLOPE)
    return Bursts(allowed, max(measured.dispersion, 1.0), max(measured.slope, 1.0))


def _is_measured(limit: Limit, planned: Planned) -> bool:
    return planned.correlation is not None and limit.expression == planned.limit and limit.allowed > 0
