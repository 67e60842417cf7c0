"""Runs the waves of a search, each in a run directory inside the search's folder."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.engine.launch import run_wave

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from inference_benchmarker.engine.live import Live
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.capacity.pilot import CapacityPilot


@dataclass(frozen=True, slots=True)
class Waves:
    """``say``: a sentence to whoever waits. ``live``: a view of an ordinary wave; of an exploration, of its pilot, too.

    ``metered``: the wave with what its server's metrics say, waited for, and stored. ``beside``: what follows the
    server's instances meanwhile.
    """

    folder: Path
    say: Callable[[str], None]
    live: Callable[[WavePlan, CapacityPilot | None], Live]
    metered: Callable[[Wave], Wave] = lambda wave: wave
    begin: Callable[[], None] = lambda: None
    beside: Callable[[RunDir], AbstractContextManager[object]] = nullcontext

    def explore(self, plan: WavePlan, pilot: CapacityPilot) -> Wave:
        """An adaptive wave."""
        return run_wave(plan, self.live(plan, pilot), pilot=pilot, beside=self.beside)

    def confirm(self, plan: WavePlan) -> Wave:
        """An ordinary wave, with its server's metrics."""
        self.begin()
        return self.metered(run_wave(plan, self.live(plan, None), beside=self.beside))
