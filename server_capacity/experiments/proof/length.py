"""The length of a proof: long enough that it tells a right plan from one that is an instance short. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.words.wording import length_text
from server_capacity.experiments.capacity.confirmation import USUAL_DISPERSION
from server_capacity.experiments.proof.evidence import HELD, LONGEST_S, Bursts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.search.limits import Limit

USUAL_SLOPE = 10.0
"""The slope of a limit of which the search told nothing."""
LEAST_TELLING = 0.7
"""A time that tells a plan that is one instance short, or a right one, less often is too short."""


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
    def tells(self) -> bool:
        """Tells whether the time is long enough."""
        return self.rejects >= LEAST_TELLING and (self.holds >= LEAST_TELLING or self.seconds >= self.needed_s)

    def to_json(self) -> dict[str, Any]:
        """Its part of proof.json."""
        chances = {"rejects_one_short": self.rejects, "holds_if_right": self.holds, "by_measured_bursts": self.measured}
        return {"seconds": self.seconds, "warmup_s": self.warmup_s, "needed_s": self.needed_s, **chances}

    def sentence(self) -> str:
        """The time, and what it can tell, before it begins."""
        told = (
            f"Sends for {length_text(self.seconds)}, after {length_text(self.warmup_s)} that count for nothing: that "
            f"rejects a plan that is one instance short in {self.rejects:.0%} of cases, and holds a right one in "
            f"{self.holds:.0%}"
        )
        told += "." if self.measured else ", by usual bursts: the search did not tell of any."
        if not self.tells:
            told += f" {length_text(self.seconds)} is too short to tell: {self._instead()}."
        elif self.holds < HELD:
            why = "it is near it" if self.seconds >= self.needed_s else self._instead()
            told += f" A right plan may not be told from its limit: {why}."
        return told

    def _instead(self) -> str:
        if self.needed_s < LONGEST_S:
            return f"give --time {math.ceil(self.needed_s)}"
        return f"more than {length_text(LONGEST_S)} would be needed, which --time can ask for"


def length_of(planned: Planned, limits: Sequence[Limit], time_s: float | None, least_s: float = 0.0) -> Length:
    """The length of a proof: ``time_s`` where it is given, else what it takes, and at least ``least_s``."""
    main = next((limit for limit in limits if limit.expression == planned.limit), limits[0])
    bursts = bursts_of(main, planned)
    measured = bursts is not None
    bursts = bursts or Bursts(max(main.allowed, 1e-4), USUAL_DISPERSION, USUAL_SLOPE)
    needed = planned.aim.length_s(bursts)
    seconds = time_s or max(needed, least_s)
    warmup = min(planned.aim.warmup_s(bursts), seconds)
    return Length(seconds, warmup, needed, *planned.aim.chances(bursts, seconds), measured=measured)


def bursts_of(limit: Limit, planned: Planned) -> Bursts | None:
    """The bursts of a limit, as the search measured them; None where it did not."""
    told = planned.correlation
    if told is None or limit.expression != planned.limit or not limit.allowed:
        return None
    return Bursts(limit.allowed, max(told["dispersion"], 1.0), max(told["slope"], 1.0))
