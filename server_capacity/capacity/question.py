"""The question that a search answers: the endpoint, the limits, how far to go. Light: it loads nothing that sends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.stage import LEAST_RATE, MAX_RATE

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan
    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings


@dataclass(frozen=True, slots=True)
class Question:
    """A search that is asked for.

    ``plan``: what is sent, and from how many workers at first; its rate and bounds are those of each wave.
    ``most_workers``: as many may be taken where the client is the limit. ``soak_s``: seconds for which the interval's
    lower end is confirmed, None for a usual confirmation. ``warm``: every payload is sent once before the search.
    """

    plan: WavePlan
    limits: tuple[Limit, ...]
    settings: Settings
    most_workers: int
    soak_s: float | None = None
    warm: bool = False

    def exploration(self, rate: float, workers: int, folder: Path) -> WavePlan:
        """The plan of an adaptive wave that begins at a rate; its limits are the search's, so it has none itself."""
        load = OpenLoop(offerable(rate), self.settings.arrivals, steered=True)
        plan = replace(self.plan, load=load, bounds=Bounds(), workers=workers, output_dir=folder)
        return replace(plan, slos=(), server_limits=(), success_threshold=0.0, name=self.named("exploration"))

    def confirmation(self, rate: float, seconds: float, workers: int, folder: Path) -> WavePlan:
        """The plan of an ordinary wave at one rate, with every limit."""
        load = OpenLoop(offerable(rate), self.settings.arrivals)
        bounds = Bounds(Decimal(f"{seconds:.3f}"))
        plan = replace(self.plan, load=load, bounds=bounds, workers=workers, output_dir=folder)
        return replace(plan, name=self.named(f"{offerable(rate):f}/s"))

    def named(self, what: str) -> str:
        """The name of a wave of the search in reports."""
        return what if self.plan.name is None else f"{self.plan.name}, {what}"


def offerable(rate: float) -> Decimal:
    """A rate to four digits, as a wave can offer it; 0 is a pause."""
    if rate <= 0:
        return Decimal(0)
    digits = Decimal(f"{rate:.3e}").quantize(LEAST_RATE, ROUND_HALF_EVEN) if rate < 1 else Decimal(f"{rate:.3e}")
    return min(max(digits.normalize() + 0, LEAST_RATE), Decimal(MAX_RATE))
